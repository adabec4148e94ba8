/* Scratch memory, generic pointers, calls, tables: what needs more of the machine than arithmetic does. */
#include "device.h"

SHARED(int, shared_numbers, 256);

/* 24 numbers a thread, sorted in an array that no register can index. */
KERNEL(insertion)
{
    const GLOBAL int *a = (const GLOBAL int *)pa + 24 * INDEX;
    GLOBAL int *o = (GLOBAL int *)po + 24 * INDEX;
    int own[24];
    (void)pb, (void)n;
    for (int i = 0; i < 24; i++) own[i] = a[i];
    for (int i = 1; i < 24; i++) {
        const int v = own[i];
        int j = i - 1;
        for (; j >= 0 && own[j] > v; j--) own[j + 1] = own[j];
        own[j + 1] = v;
    }
    for (int i = 0; i < 24; i++) o[i] = own[i];
}
/* One pointer to memory, LDS or scratch memory, lane by lane. */
KERNEL(generic)
{
    const int t = THREAD;
    const GLOBAL int *a = (const GLOBAL int *)pa;
    shared_numbers[t] = a[INDEX] * 2;
    barrier();
    int own[4] = { t, t + 1, t + 2, t + n };
    const int *p = &own[t & 3];
    if (t % 3 == 0) p = (const int *)(a + INDEX);
    if (t % 3 == 1) p = (const int *)&shared_numbers[t ^ 1];
    ((GLOBAL int *)po)[INDEX] = *p + ((const GLOBAL int *)pb)[INDEX];
}
KERNEL(generic_stores)
{
    const int t = THREAD;
    int own[2] = { 5, 7 };
    shared_numbers[t] = 1;
    barrier();
    int *p = (t & 1) != 0 ? (int *)&shared_numbers[t] : &own[t >> 1 & 1];
    *p = ((const GLOBAL int *)pa)[INDEX];
    __atomic_fetch_add((t & 1) != 0 ? p : (int *)&shared_numbers[t], n, __ATOMIC_RELAXED);
    ((GLOBAL int *)po)[INDEX] = shared_numbers[t] + own[0] * 3 + own[1];
    (void)pb;
}
/* Bytes and halves of scratch memory. */
KERNEL(reversed)
{
    const GLOBAL u8 *a = (const GLOBAL u8 *)pa + 128 * INDEX;
    GLOBAL u8 *o = (GLOBAL u8 *)po + 128 * INDEX;
    u8 own[128];
    (void)pb;
    for (int i = 0; i < 128; i++) own[i] = a[i];
    for (int i = 0; i < 128; i++) o[i] = own[127 - (i * n & 127)];
}
__attribute__((noinline)) static int collatz(u32 number)
{
    int count = 0;
    for (; number != 1; count++) number = (number & 1) != 0 ? 3 * number + 1 : number / 2;
    return count;
}
__attribute__((noinline)) static int factorial(int number) { return number < 2 ? 1 : number * factorial(number - 1); }
KERNEL(calls)
{
    const int v = ((const GLOBAL int *)pa)[INDEX];
    ((GLOBAL int *)po)[INDEX] = collatz(((u32)v & 0xff) + 1) * n;
    (void)pb;
}
KERNEL(recursion)
{
    const int v = ((const GLOBAL int *)pa)[INDEX];
    ((GLOBAL int *)po)[INDEX] = factorial((v & 7) + n);
    (void)pb;
}
KERNEL(switches)
{
    const int v = ((const GLOBAL int *)pa)[INDEX];
    int r;
    switch (v & 7) {
    case 0: r = (int)((u32)v * 3); break;
    case 1: r = v ^ 55; break;
    case 2: r = v >> 2; break;
    case 3: r = (int)-(u32)v; break;
    case 4: r = v / 7; break;
    case 5: r = v % 11; break;
    case 6: r = __builtin_popcount((u32)v); break;
    default: r = __builtin_clz((u32)v | 1); break;
    }
    ((GLOBAL int *)po)[INDEX] = r;
    (void)pb, (void)n;
}
struct record { int number[12]; char letter; short small; double real; };
KERNEL(records)
{
    struct record r = ((const GLOBAL struct record *)pa)[INDEX];
    r.number[INDEX % 12] += 5, r.letter++, r.small -= 3, r.real *= 2;
    ((GLOBAL struct record *)po)[INDEX] = r;
    (void)pb, (void)n;
}
KERNEL(table)
{
    static const __attribute__((address_space(4))) int numbers[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
    ((GLOBAL int *)po)[INDEX] = numbers[THREAD & 7] * 100 + numbers[(GROUP + n) & 7];
    (void)pa, (void)pb;
}
