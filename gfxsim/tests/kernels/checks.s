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
// case: partial_count
  begin
  ds_write_b32 v1, v0
  ds_read_b32 v2, v1
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(1)
  finish v3
// case: partial_count_enough
  begin
  ds_write_b32 v1, v0
  ds_read_b32 v2, v1
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(1)
  finish v2
// case: permute_not_waited
  begin
  ds_bpermute_b32 v2, v1, v0
  finish v2
// case: permute_waited
  begin
  ds_bpermute_b32 v2, v1, v0
  s_waitcnt lgkmcnt(0)
  finish v2
// case: wait_in_a_branch_not_taken
  begin
  ds_bpermute_b32 v2, v1, v0
  s_mov_b64 s[8:9], exec
  s_mov_b64 exec, 0
  s_cbranch_execz skip
  s_waitcnt lgkmcnt(0)
skip:
  s_mov_b64 exec, s[8:9]
  v_mov_b32 v2, 0
  s_waitcnt lgkmcnt(0)
  finish v2
// case: wait_behind_a_branch
  begin
  ds_bpermute_b32 v2, v1, v0
  s_mov_b64 s[8:9], exec
  s_mov_b64 exec, 0
  s_cbranch_execz skip
  s_nop 0
skip:
  s_mov_b64 exec, s[8:9]
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, 0
  finish v2
// case: lanes_that_are_off
  begin
  v_mov_b32 v2, 0
  v_cmp_gt_u32 vcc, 16, v0
  s_and_saveexec_b64 s[8:9], vcc
  global_load_dword v2, v1, s[4:5]
  s_mov_b64 exec, s[8:9]
  finish v2
// case: lanes_that_are_off_waited
  begin
  v_mov_b32 v2, 0
  v_cmp_gt_u32 vcc, 16, v0
  s_and_saveexec_b64 s[8:9], vcc
  global_load_dword v2, v1, s[4:5]
  s_mov_b64 exec, s[8:9]
  s_waitcnt vmcnt(0)
  finish v2
// case: load_under_a_product
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  global_load_dword v8, v1, s[4:5]
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_waitcnt vmcnt(0)
  s_nop 15
  finish v8
// case: load_in_front_of_a_product
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  global_load_dword v8, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 15
  finish v8
// case: product_of_pending
  begin
  v_lshlrev_b32 v6, 3, v0
  v_and_b32 v6, 0x1f8, v6
  v_mov_b32 v8, 0
  v_mov_b32 v9, 0
  ds_write_b64 v6, v[8:9]
  ds_read_b64 v[4:5], v6
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 15
  finish v8
// case: product_of_accumulators_pending
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_and_b32 v2, 0xf0, v1
  global_load_dwordx4 a[0:3], v2, s[4:5]
  v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[4:5], a[0:3]
  s_endpgm
// case: load_over_a_product
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  global_load_dword v8, v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v8
// case: load_over_a_product_in_time
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 15
  global_load_dword v8, v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v8
// case: atomic_not_waited
  begin
  global_atomic_add v2, v1, v0, s[4:5] sc0
  finish v2
// case: buffer_load_not_waited
  begin
  s_mov_b32 s8, s4
  s_and_b32 s9, s5, 0xffff
  s_movk_i32 s10, 0x200
  s_mov_b32 s11, 0x27000
  buffer_load_dword v2, v1, s[8:11], 0 offen
  finish v2
// case: scratch_not_waited
  begin
  scratch_store_dword off, v0, off offset:8
  scratch_load_dword v2, off, off offset:8
  finish v2
// case: scratch_waited
  begin
  scratch_store_dword off, v0, off offset:8
  scratch_load_dword v2, off, off offset:8
  s_waitcnt vmcnt(0)
  finish v2
// case: scratch_undefined
  begin
  scratch_load_dword v2, off, off offset:8
  s_waitcnt vmcnt(0)
  finish v2
// case: outside_of_scratch
  begin
  scratch_store_dword off, v0, off offset:61
  s_endpgm
// case: flat_waited_by_one
  begin
  v_mov_b32 v2, s4
  v_mov_b32 v3, s5
  s_mov_b64 s[8:9], src_shared_base
  v_mov_b32 v4, 0
  v_mov_b32 v5, s9
  v_cmp_gt_u32 vcc, 16, v0
  s_nop 1
  v_cndmask_b32 v2, v2, v4, vcc
  v_cndmask_b32 v3, v3, v5, vcc
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc0 skip
  ds_write_b32 v4, v4
  s_waitcnt lgkmcnt(0)
  flat_load_dword v6, v[2:3]
  s_waitcnt vmcnt(0)
  finish v6
skip:
  s_endpgm
// case: flat_waited_by_both
  begin
  v_mov_b32 v2, s4
  v_mov_b32 v3, s5
  s_mov_b64 s[8:9], src_shared_base
  v_mov_b32 v4, 0
  v_mov_b32 v5, s9
  v_cmp_gt_u32 vcc, 16, v0
  s_nop 1
  v_cndmask_b32 v2, v2, v4, vcc
  v_cndmask_b32 v3, v3, v5, vcc
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc0 skip
  ds_write_b32 v4, v4
  s_waitcnt lgkmcnt(0)
  flat_load_dword v6, v[2:3]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v6
skip:
  s_endpgm
// case: flat_makes_counts_useless
  begin
  v_mov_b32 v2, s4
  v_mov_b32 v3, s5
  global_load_dword v4, v1, s[4:5]
  global_load_dword v5, v1, s[4:5]
  flat_load_dword v6, v[2:3]
  s_waitcnt vmcnt(1)
  finish v4
// case: to_lds_partial_count
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  v_add_u32 v3, 0x200, v1
  global_load_lds_dword v1, s[4:5]
  s_add_u32 m0, s8, 0x200
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(1)
  ds_read_b32 v2, v3
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v2
// case: to_lds_partial_count_enough
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  v_add_u32 v3, 0x200, v1
  global_load_lds_dword v1, s[4:5]
  s_add_u32 m0, s8, 0x200
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(1)
  ds_read_b32 v2, v1
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v2
// case: to_lds_over_reads_of_others
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_barrier
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v2
// case: to_lds_over_reads_of_others_waited
  begin
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v3, 0x100, v1
  ds_read_b32 v2, v3
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v2
// case: write_over_to_lds_of_others
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  v_xor_b32 v3, 0x100, v1
  global_load_lds_dword v1, s[4:5]
  s_barrier
  ds_write_b32 v3, v0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  finish v0
// case: atomics_then_read
  begin
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc0 other
  ds_write_b32 v2, v3
other:
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_add_u32 v2, v0
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc0 end
  ds_read_b32 v4, v2
  s_waitcnt lgkmcnt(0)
  finish v4
end:
  s_endpgm
// case: atomics_then_barrier
  begin
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  v_readfirstlane_b32 s8, v0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc0 other
  ds_write_b32 v2, v3
other:
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_add_u32 v2, v0
  ds_add_u32 v2, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v4, v2
  s_waitcnt lgkmcnt(0)
  finish v4
// case: atomics_on_what_nobody_wrote
  begin
  v_mov_b32 v2, 0
  ds_add_rtn_u32 v3, v2, v0
  s_waitcnt lgkmcnt(0)
  finish v3
// case: writes_code
  begin
  s_getpc_b64 s[8:9]
  v_and_b32 v2, 12, v1
  s_nop 2
  global_store_dword v2, v0, s[8:9]
  s_endpgm
// case: to_lds_misaligned
  begin
  s_mov_b32 m0, 2
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v0
// case: misaligned_short
  begin
  v_or_b32 v2, 1, v1
  ds_write_b16 v2, v0
  finish v0
// case: misaligned_wide
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mov_b32 v6, 0
  v_mov_b32 v7, 0
  v_lshl_or_b32 v2, v0, 4, 8
  ds_write_b128 v2, v[4:7]
  finish v0
// case: transposed_with_all_lanes
  begin
  v_lshlrev_b32 v4, 3, v0
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  ds_write_b64 v4, v[2:3]
  s_waitcnt lgkmcnt(0)
  ds_read_b64_tr_b8 v[2:3], v4
  s_waitcnt lgkmcnt(0)
  finish v2
// case: lane_number_at_once
  begin
  v_readfirstlane_b32 s8, v0
  s_and_b32 s9, s2, 0
  v_readfirstlane_b32 s8, v0
  s_nop 2
  v_readlane_b32 s9, v1, s8
  finish v0
// case: lane_number_in_time
  begin
  v_readfirstlane_b32 s8, v0
  s_nop 3
  v_readlane_b32 s9, v1, s8
  finish v0
// case: swap_at_once
  begin
  v_mov_b32 v2, v0
  v_mov_b32 v3, v1
  v_permlane32_swap_b32 v2, v3
  finish v2
// case: swap_in_time
  begin
  v_mov_b32 v2, v0
  v_mov_b32 v3, v1
  s_nop 1
  v_permlane32_swap_b32 v2, v3
  finish v2
// case: exec_then_dpp
  begin
  v_mov_b32 v2, v0
  v_mov_b32 v3, 0
  v_cmp_le_u32_e64 exec, 0, v0
  s_nop 3
  v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
  finish v3
// case: half_used_at_once
  begin
  v_mov_b32 v2, 0
  v_add_u32_sdwa v2, v0, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD
  v_add_u32 v3, v2, v0
  finish v3
// case: half_used_in_time
  begin
  v_mov_b32 v2, 0
  v_add_u32_sdwa v2, v0, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD
  s_nop 0
  v_add_u32 v3, v2, v0
  finish v3
// case: product_in_part_as_c
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mov_b32 v12, 0
  v_mov_b32 v13, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 4
  v_mfma_f32_16x16x16_f16 v[16:19], v[4:5], v[4:5], v[10:13]
  s_nop 15
  finish v16
// case: product_in_part_as_c_in_time
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mov_b32 v12, 0
  v_mov_b32 v13, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 5
  v_mfma_f32_16x16x16_f16 v[16:19], v[4:5], v[4:5], v[10:13]
  s_nop 15
  finish v16
// case: product_as_a_in_time
  begin
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mfma_f32_16x16x16_f16 v[8:11], v[4:5], v[4:5], 0
  s_nop 7
  v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[4:5], 0
  s_nop 15
  finish v12
// case: address_used_in_time
  begin
  v_readfirstlane_b32 s8, v1
  v_mov_b32 v3, 0
  s_mov_b32 s8, 0
  s_nop 3
  v_readfirstlane_b32 s9, v3
  s_nop 4
  global_store_dword v1, v0, s[6:7]
  s_load_dword s10, s[6:7], s9
  s_endpgm
// case: m0_used_in_time
  begin
  v_readfirstlane_b32 s8, v1
  s_mov_b32 m0, s8
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  finish v0
// case: division_at_once
  begin
  v_cmp_eq_u32 vcc, v0, v0
  s_nop 2
  v_div_fmas_f32 v2, 1.0, 1.0, 1.0
  finish v2
// case: division_in_time
  begin
  v_cmp_eq_u32 vcc, v0, v0
  s_nop 3
  v_div_fmas_f32 v2, 1.0, 1.0, 1.0
  finish v2
// case: index_undefined
  begin
  s_set_gpr_idx_on s9, gpr_idx(SRC0)
  v_mov_b32 v2, v0
  s_set_gpr_idx_off
  finish v2
// case: index_defined
  begin
  s_set_gpr_idx_on s2, gpr_idx(SRC0)
  v_mov_b32 v2, v0
  s_set_gpr_idx_off
  finish v2
// case: index_outside
  begin
  s_movk_i32 s8, 40
  s_set_gpr_idx_on s8, gpr_idx(SRC0)
  v_mov_b32 v2, v0
  s_set_gpr_idx_off
  finish v2
// case: clamped_product
  begin
  v_mad_u32_u24 v2, v0, v0, v0 clamp
  finish v2
// case: loop_that_ends
  begin
  s_movk_i32 s8, 100
again:
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 again
  finish v0
// case: lower_half_moved
  begin
  global_load_ubyte_d16 v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_lshlrev_b32 v3, 16, v2
  finish v3
// case: upper_half_moved
  begin
  global_load_ubyte_d16 v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_lshrrev_b32 v3, 8, v2
  finish v3
// case: skipped_store
  begin
  s_setvskip 1, 0
  global_load_dword v2, v1, s[4:5]
  v_mov_b32 v2, v9
  s_setvskip 0, 0
  finish v0
// case: skipped_by_nobody
  begin
  s_setvskip 2, 0
  v_mov_b32 v2, v9
  finish v2
// case: rounding_not_there
  begin
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5
  finish v0
// case: hardware_not_there
  begin
  s_getreg_b32 s8, hwreg(HW_REG_HW_ID)
  finish v0
// case: cmpx_then_dpp
  begin
  v_cmpx_t_u32 vcc, v0, v0
  v_mov_b32_dpp v2, v0 row_shl:1
  finish v0
// case: cmpx_undefined
  begin
  v_cmpx_lt_u32 vcc, v9, v0
  finish v0
