# What a user gets: headers, both libraries, the command, a package for find_package and a file for pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(blockscale_static PROPERTIES EXPORT_NAME static)
# The static library brings its needs by name, so that C and C++ programs, CMake or not, link it in the same way.
foreach(need m pthread ${CMAKE_DL_LIBS})
  target_link_libraries(blockscale_static INTERFACE $<INSTALL_INTERFACE:${need}>)
  string(APPEND BLOCKSCALE_LIBS_PRIVATE " -l${need}")
endforeach()

install(TARGETS blockscale blockscale_static blockscale_command EXPORT blockscale-targets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(NOT CMAKE_CROSSCOMPILING)
  install(FILES ${PROJECT_BINARY_DIR}/share/blockscale.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${PROJECT_BINARY_DIR}/share/blockscale DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${PROJECT_BINARY_DIR}/share/_blockscale DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${PROJECT_BINARY_DIR}/share/blockscale.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES third_party/yyjson/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.yyjson)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/blockscale)
install(EXPORT blockscale-targets NAMESPACE blockscale:: DESTINATION ${package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/blockscale-config.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/blockscale-targets.cmake\")\n")
# Before version 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/blockscale-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/blockscale-config.cmake ${PROJECT_BINARY_DIR}/blockscale-config-version.cmake
  DESTINATION ${package_dir})

# Relative to where the .pc file lies, so that the installed tree can be moved.
file(RELATIVE_PATH BLOCKSCALE_PC_TO_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/blockscale.pc.in ${PROJECT_BINARY_DIR}/blockscale.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/blockscale.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
