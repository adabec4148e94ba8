/* Workgroups that work together: LDS, barriers, exchanges between lanes, atomics. */
#include "device.h"

SHARED(float, sums, 256);
SHARED(float, tile, 32 * 33);
SHARED(u32, keys, 512);
SHARED(u32, counts, 256);
SHARED(u32, words, 16);
SHARED(u64, pairs, 4);
SHARED(float, reals, 4);

static float all_of(float own, int largest)
{
    const int t = THREAD;
    barrier();
    sums[t] = own;
    barrier();
    for (int k = 128; k > 0; k /= 2) {
        if (t < k) sums[t] = largest ? __builtin_fmaxf(sums[t], sums[t + k]) : sums[t] + sums[t + k];
        barrier();
    }
    return sums[0];
}

/* The sum of n numbers a group. */
KERNEL(reduce)
{
    const GLOBAL float *a = (const GLOBAL float *)pa + GROUP * n;
    float s = 0;
    for (int i = THREAD; i < n; i += 256) s += a[i];
    s = all_of(s, 0);
    if (THREAD == 0) ((GLOBAL float *)po)[GROUP] = s;
    (void)pb;
}
/* A row of n numbers a group. */
KERNEL(softmax)
{
    const GLOBAL float *a = (const GLOBAL float *)pa + GROUP * n;
    float most = -1e30f, s = 0;
    for (int i = THREAD; i < n; i += 256) most = __builtin_fmaxf(most, a[i]);
    most = all_of(most, 1);
    for (int i = THREAD; i < n; i += 256) s += __builtin_expf(a[i] - most);
    s = all_of(s, 0);
    for (int i = THREAD; i < n; i += 256) ((GLOBAL float *)po)[GROUP * n + i] = __builtin_expf(a[i] - most) / s;
    (void)pb;
}
/* n x n numbers in tiles of 32 x 32, some a group. */
KERNEL(transpose)
{
    const GLOBAL float *a = (const GLOBAL float *)pa;
    const int x = THREAD % 32, y = THREAD / 32, across = n / 32;
    for (int at = GROUP; at < across * across; at += 2) {
        const int left = at % across * 32, top = at / across * 32;
        for (int j = 0; j < 32; j += 8) tile[(y + j) * 33 + x] = a[(top + y + j) * n + left + x];
        barrier();
        for (int j = 0; j < 32; j += 8) ((GLOBAL float *)po)[(left + y + j) * n + top + x] = tile[x * 33 + y + j];
        barrier();
    }
    (void)pb;
}
/* 512 keys a group, by 256 threads. */
KERNEL(bitonic)
{
    const int t = THREAD;
    for (int i = t; i < 512; i += 256) keys[i] = ((const GLOBAL u32 *)pa)[512 * GROUP + i];
    for (int k = 2; k <= 512; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            barrier();
            const int i = 2 * t - (t & (j - 1));
            const u32 low = keys[i], high = keys[i + j];
            if ((low > high) == ((i & k) == 0)) keys[i] = high, keys[i + j] = low;
        }
    barrier();
    for (int i = t; i < 512; i += 256) ((GLOBAL u32 *)po)[512 * GROUP + i] = keys[i];
    (void)pb, (void)n;
}
/* How often each byte comes, n bytes in all; the output begins as pb says. */
KERNEL(histogram)
{
    const int t = THREAD;
    counts[t] = 0;
    barrier();
    for (int i = INDEX; i < n; i += 512) __atomic_fetch_add(&counts[((const GLOBAL u8 *)pa)[i]], 1, __ATOMIC_RELAXED);
    barrier();
    __atomic_fetch_add((GLOBAL u32 *)po + t, counts[t] - (GROUP == 0), __ATOMIC_RELAXED);
    (void)pb;
}
/* Sums over the lanes before, by permutes and by DPP. */
KERNEL(scan)
{
    const int lane = THREAD & 63;
    int v = ((const GLOBAL int *)pa)[INDEX], r = v;
    for (int d = 1; d < 64; d *= 2) {
        const int u = __builtin_amdgcn_ds_bpermute((lane - d) * 4, v);
        if (lane >= d) v += u;
    }
    r += __builtin_amdgcn_update_dpp(0, r, 0x111, 0xf, 0xf, 1);
    r += __builtin_amdgcn_update_dpp(0, r, 0x112, 0xf, 0xf, 1);
    r += __builtin_amdgcn_update_dpp(0, r, 0x114, 0xf, 0xf, 1);
    r += __builtin_amdgcn_update_dpp(0, r, 0x118, 0xf, 0xf, 1);
    ((GLOBAL int *)po)[2 * INDEX] = v, ((GLOBAL int *)po)[2 * INDEX + 1] = r;
    (void)pb, (void)n;
}
/* Every operation on LDS by 256 threads; the first group's alone are looked at. */
KERNEL(atomics_on_lds)
{
    const int t = THREAD;
    GLOBAL u32 *o = (GLOBAL u32 *)po;
    if (t < 16) words[t] = t == 6 ? ~0u : 1000;
    if (t < 4) pairs[t] = 0, reals[t] = 0;
    barrier();
    __atomic_fetch_add(&words[1], t, __ATOMIC_RELAXED);
    __atomic_fetch_or(&words[2], 1u << (t & 31), __ATOMIC_RELAXED);
    __atomic_fetch_xor(&words[3], t * 7, __ATOMIC_RELAXED);
    __atomic_fetch_max(&words[4], t * 30, __ATOMIC_RELAXED);
    __atomic_fetch_min((LDS int *)&words[5], -t, __ATOMIC_RELAXED);
    __atomic_fetch_and(&words[6], ~(1u << (t & 15)), __ATOMIC_RELAXED);
    __atomic_fetch_sub(&words[7], t, __ATOMIC_RELAXED);
    u32 wanted = 1000;
    __atomic_compare_exchange_n(&words[8], &wanted, 77, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    wanted = 5;
    __atomic_compare_exchange_n(&words[10], &wanted, 78, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    const u32 before = __atomic_fetch_add(&words[0], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&pairs[0], (u64)t << 30, __ATOMIC_RELAXED);
    __atomic_fetch_max(&pairs[1], (u64)t << 33, __ATOMIC_RELAXED);
    __hip_atomic_fetch_add(&reals[0], 1.5f, __ATOMIC_RELAXED, 3);
    const u32 swapped = __atomic_exchange_n(&words[9], 5, __ATOMIC_RELAXED);
    barrier();
    if (GROUP == 0) {
        o[64 + t] = before;
        __atomic_fetch_add(&o[63], swapped == 1000, __ATOMIC_RELAXED);
        if (t < 16) o[t] = words[t];
        if (t < 2) ((GLOBAL u64 *)po)[8 + t] = pairs[t];
        if (t == 0) ((GLOBAL float *)po)[20] = reals[0];
    }
    (void)pa, (void)pb, (void)n;
}
/* The same on memory, from both groups; the output begins with zeros. */
KERNEL(atomics_on_memory)
{
    const int t = THREAD;
    GLOBAL u32 *o = (GLOBAL u32 *)po;
    GLOBAL u64 *wide = (GLOBAL u64 *)(o + 16);
    __atomic_fetch_add(&o[1], t, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&o[2], t, __ATOMIC_RELAXED);
    __atomic_fetch_max((GLOBAL int *)&o[3], t, __ATOMIC_RELAXED);
    __atomic_fetch_min((GLOBAL int *)&o[4], -t, __ATOMIC_RELAXED);
    __atomic_fetch_or(&o[5], 1u << (t & 31), __ATOMIC_RELAXED);
    __atomic_fetch_xor(&o[6], INDEX, __ATOMIC_RELAXED);
    __atomic_fetch_and(&o[7], ~(1u << (t & 31)), __ATOMIC_RELAXED);
    __atomic_fetch_add(&wide[0], (u64)t << 32, __ATOMIC_RELAXED);
    __atomic_fetch_max(&wide[1], (u64)t << 32, __ATOMIC_RELAXED);
    __hip_atomic_fetch_add((GLOBAL float *)&o[9], 0.5f, __ATOMIC_RELAXED, 4);
    u32 seen = __atomic_load_n(&o[8], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&o[8], &seen, seen + 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) { }
    __atomic_exchange_n(&o[10], 7, __ATOMIC_RELAXED);
    u32 other = 1;
    __atomic_compare_exchange_n(&o[11], &other, 99, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    (void)pa, (void)pb, (void)n;
}
/* n x n numbers, a row a group and turn. */
KERNEL(matmul)
{
    const GLOBAL float *a = (const GLOBAL float *)pa, *b = (const GLOBAL float *)pb;
    for (int row = GROUP; row < n; row += 2)
        for (int j = THREAD; j < n; j += 256) {
            float s = 0;
            for (int k = 0; k < n; k++) s += a[row * n + k] * b[k * n + j];
            ((GLOBAL float *)po)[row * n + j] = s;
        }
}
