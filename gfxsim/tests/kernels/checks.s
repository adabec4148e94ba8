// Kernels of the checks: a wrong one and its right twin for each.  assemble.py makes golden_checks.h of them.
// Two waves; arguments: in (s[4:5]), out (s[6:7]); v1 = 4 * thread; 4096 bytes of LDS.
.macro begin
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
.endm
.macro finish register
  global_store_dword v1, \register, s[6:7]
  s_endpgm
.endm

// case: load_not_waited
  begin
  global_load_dword v2, v1, s[4:5]
  finish v2
// case: load_waited
  begin
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v2
// case: second_load_not_waited
  begin
  global_load_dword v2, v1, s[4:5]
  global_load_dword v3, v1, s[4:5] offset:4
  s_waitcnt vmcnt(1)
  v_add_u32 v2, v2, v3
  finish v2
// case: first_load_waited
  begin
  global_load_dword v2, v1, s[4:5]
  global_load_dword v3, v1, s[4:5] offset:4
  s_waitcnt vmcnt(1)
  v_add_u32 v2, v2, v1
  finish v2
// case: overwrites_pending
  begin
  global_load_dword v2, v1, s[4:5]
  v_mov_b32 v2, 0
  s_waitcnt vmcnt(0)
  finish v2
// case: overwrites_delivered
  begin
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_mov_b32 v2, 0
  finish v2
// case: scalar_load_not_waited
  begin
  s_load_dword s8, s[4:5], 0x0
  v_mov_b32 v2, s8
  finish v2
// case: scalar_load_waited
  begin
  s_load_dword s8, s[4:5], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s8
  finish v2
// case: scalar_loads_counted
  begin
  s_load_dword s8, s[4:5], 0x0
  s_load_dword s9, s[4:5], 0x4
  s_waitcnt lgkmcnt(1)
  v_mov_b32 v2, s8
  finish v2
// case: lds_read_not_waited
  begin
  ds_write_b32 v1, v0
  ds_read_b32 v2, v1
  finish v2
// case: lds_read_waited
  begin
  ds_write_b32 v1, v0
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  finish v2
// case: no_barrier
  begin
  ds_write_b32 v1, v1
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  finish v2
// case: barrier
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  finish v2
// case: barrier_without_wait
  begin
  ds_write_b32 v1, v0
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  finish v2
// case: overwrites_what_others_read
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  ds_write_b32 v1, v2
  finish v2
// case: overwrites_behind_barrier
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_write_b32 v1, v2
  finish v2
// case: to_lds_not_waited
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  ds_read_b32 v2, v1
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v2
// case: to_lds_waited
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  finish v2
// case: to_lds_of_others
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_barrier
  s_waitcnt vmcnt(0)
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  finish v2
// case: to_lds_of_others_waited
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  finish v2
// case: to_lds_over_own_read
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v2, v1
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v2
// case: to_lds_over_own_read_waited
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v2
// case: to_lds_at_the_end
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  finish v0
// case: to_lds_without_m0
  begin
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v0
// case: undefined_store
  begin
  finish v2
// case: undefined_half
  begin
  global_load_short_d16_hi v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v2
// case: undefined_half_unused
  begin
  global_load_short_d16_hi v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_and_b32 v2, 0xffff0000, v2
  finish v2
// case: undefined_address
  begin
  v_add_u32 v3, v1, v4
  global_store_dword v3, v0, s[6:7]
  s_endpgm
// case: undefined_branch
  begin
  s_cmp_eq_u32 s9, 0
  s_cbranch_scc1 skip
  s_nop 0
skip:
  finish v0
// case: defined_branch
  begin
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc1 skip
  s_nop 0
skip:
  finish v0
// case: undefined_lds
  begin
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  finish v2
// case: undefined_product
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[6:7], 0
  s_nop 15
  finish v8
// case: defined_product
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 15
  finish v8
// case: outside_of_memory
  begin
  global_load_dword v2, v1, s[4:5] offset:8
  s_waitcnt vmcnt(0)
  finish v2
// case: inside_of_memory
  begin
  global_load_dword v2, v1, s[4:5] offset:4
  s_waitcnt vmcnt(0)
  finish v2
// case: inside_of_lds
  begin
  v_add_u32 v2, 0xe00, v1
  ds_write_b32 v2, v0
  finish v0
// case: outside_of_lds
  begin
  v_add_u32 v2, 0xf00, v1
  ds_write_b32 v2, v0 offset:0xff
  finish v0
// case: outside_of_lds_end
  begin
  v_add_u32 v2, 0xe00, v1
  ds_write_b32 v2, v0 offset:4
  finish v0
// case: outside_of_arguments
  begin
  s_load_dwordx2 s[8:9], s[0:1], 0xc
  s_waitcnt lgkmcnt(0)
  finish v0
// case: writes_arguments
  begin
  v_and_b32 v2, 12, v1
  global_store_dword v2, v0, s[0:1]
  s_endpgm
// case: outside_of_buffer
  begin
  s_mov_b32 s8, s4
  s_and_b32 s9, s5, 0xffff
  s_movk_i32 s10, 0x100
  s_mov_b32 s11, 0x27000
  buffer_load_dword v2, v1, s[8:11], 0 offen
  s_waitcnt vmcnt(0)
  finish v2
// case: misaligned
  begin
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  ds_write_b64 v1, v[2:3]
  finish v0
// case: aligned
  begin
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  v_lshlrev_b32 v4, 1, v1
  ds_write_b64 v4, v[2:3]
  finish v0
// case: barrier_missed
  begin
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 skip
  s_barrier
skip:
  finish v0
// case: barriers_apart
  begin
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 other
  s_barrier
  s_branch skip
other:
  s_barrier
skip:
  finish v0
// case: product_stored_at_once
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 6
  finish v8
// case: product_stored_in_time
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 7
  finish v8
// case: product_as_a
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[4:5], 0
  s_nop 15
  finish v12
// case: product_as_c
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], v[8:11]
  s_nop 15
  finish v8
// case: lane_read_at_once
  begin
  v_mov_b32 v2, 7
  v_readfirstlane_b32 s8, v2
  v_mov_b32 v3, 0
  v_mov_b32 v3, 0
  v_mov_b32 v2, s8
  finish v2
// case: lane_read_in_time
  begin
  v_mov_b32 v2, 7
  s_nop 0
  v_readfirstlane_b32 s8, v2
  s_nop 1
  v_mov_b32 v2, s8
  finish v2
// case: scalar_used_at_once
  begin
  v_readfirstlane_b32 s8, v1
  s_nop 0
  v_mov_b32 v2, s8
  finish v2
// case: address_used_at_once
  begin
  v_readfirstlane_b32 s6, v1
  v_mov_b32 v3, 0
  v_mov_b32 v3, 0
  finish v0
// case: m0_used_at_once
  begin
  s_mov_b32 m0, 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v0
// case: reciprocal_used_at_once
  begin
  v_rcp_f32 v2, 2.0
  v_add_f32 v2, 1.0, v2
  finish v2
// case: reciprocal_used_in_time
  begin
  v_rcp_f32 v2, 2.0
  s_nop 0
  v_add_f32 v2, 1.0, v2
  finish v2
// case: dpp_at_once
  begin
  v_mov_b32 v2, v0
  v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
  finish v3
// case: dpp_in_time
  begin
  v_mov_b32 v2, v0
  s_nop 1
  v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
  finish v3
// case: product_with_lanes_off
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  s_mov_b64 exec, 1
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 15
  finish v8
// case: transposed_with_lanes_off
  begin
  s_mov_b64 exec, 1
  ds_read_b64_tr_b8 v[2:3], v1
  s_waitcnt lgkmcnt(0)
  s_endpgm
// case: endless
  begin
again:
  s_branch again
// case: unknown
  .long 0xbf9fffff
// case: runs_away
  s_branch 30000
// case: register_that_is_not_there
  begin
  v_mov_b32 v63, 0
  finish v63
// case: atomics
  begin
  global_atomic_add v2, v1, v0, s[4:5] sc0
  s_waitcnt vmcnt(0)
  finish v2
// case: conflicts
  begin
  v_lshlrev_b32 v2, 8, v0
  v_and_b32 v2, 0xf00, v2
  v_lshlrev_b32 v3, 4, v0
  v_and_b32 v3, 0xfc, v3
  v_mov_b32 v4, 0
  v_cmp_gt_u32 vcc, 16, v0
  s_and_saveexec_b64 s[8:9], vcc
  ds_write_b32 v2, v4
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, s[8:9]
  finish v0
// case: conflicts_none
  begin
  v_mov_b32 v4, 0
  ds_write_b32 v1, v4
  s_waitcnt lgkmcnt(0)
  finish v0
