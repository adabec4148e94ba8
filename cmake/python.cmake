# What the Python package gets (python/pyproject.toml): the library and the command in its folder, which lie beside each
# other in a wheel, so that the kernels are there once; and a script that starts the command.
set_property(TARGET blockscale PROPERTY VERSION)
set_property(TARGET blockscale PROPERTY SOVERSION)
set_property(TARGET blockscale_command PROPERTY INSTALL_RPATH "$ORIGIN")
target_link_options(blockscale PRIVATE -s)
target_link_options(blockscale_command PRIVATE -s)
install(TARGETS blockscale LIBRARY DESTINATION blockscale COMPONENT python)
install(TARGETS blockscale_command RUNTIME DESTINATION blockscale COMPONENT python)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/cmake/python-command.in DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python
  RENAME blockscale)
install(FILES LICENSE DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python)
install(FILES third_party/yyjson/LICENSE DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python
  RENAME LICENSE.yyjson)
