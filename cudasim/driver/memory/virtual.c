/* Virtual memory management: ranges of addresses, physical memory, and mappings.  Physical memory is a file without a
 * name; a mapping shows it on the host at the address that it has on the device, so that neighbours are neighbours
 * there too and two mappings of one memory show the same bytes.  What the device may reach is one allocation per run of
 * neighbours. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/graph/capture.h"
#include "machine/core/global_memory.h"

CUDASIM_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                                      int option);
CUDASIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                                    const CUmemAllocationProp *properties, unsigned long long flags);
CUDASIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUDASIM_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr wish,
                                            unsigned long long flags);
CUDASIM_EXPORT CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                                 unsigned long long flags);
CUDASIM_EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes);
CUDASIM_EXPORT CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUDASIM_EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer);

enum { GRANULE = 2 << 20 };
struct physical {
    struct physical *next;
    CUdevice device;
    uint64_t number;
    size_t bytes;
    int file;
    uint32_t users;
};
struct mapping {
    struct mapping *next;
    uint64_t base;
    size_t bytes;
    struct physical *physical;
    uint8_t access[MOST_DEVICES];         /* CU_MEM_ACCESS_FLAGS_... */
};
struct reservation {
    struct reservation *next;
    uint64_t base;
    size_t bytes;
    struct mapping *mappings;
}; /* mappings by rising base */

static struct physical *physicals;        /* with those that are released and still mapped: number 0 */
static uint64_t numbers;

static struct physical *find_physical(CUmemGenericAllocationHandle handle)
{
    struct physical *p = physicals;
    while (p != NULL && (handle == 0 || p->number != handle)) p = p->next;
    return p;
}

static void drop(struct physical *physical)
{
    if (--physical->users != 0) return;
    struct physical **link = &physicals;
    while (*link != physical) link = &(*link)->next;
    *link = physical->next;
    close(physical->file);
    free(physical);
}

/* Any context's, which takes the place of `context`: it keeps the range until it closes. */
static struct reservation *find_reservation(struct CUctx_st **context, uint64_t address, size_t bytes)
{
    for (struct CUctx_st *c = driver.contexts; c != NULL; c = c->next)
        for (struct reservation *r = c->reservations; r != NULL; r = r->next)
            if (address >= r->base && address - r->base < r->bytes && bytes <= r->bytes - (address - r->base)) {
                *context = c;
                return r;
            }
    return NULL;
}

static const struct mapping *mapping_at(const struct reservation *r, uint64_t address)
{
    const struct mapping *m = r->mappings;
    while (m != NULL && address - m->base >= m->bytes) m = m->next;
    return m;
}

CUdevice virtual_device(const struct CUctx_st *context, CUdeviceptr pointer)
{
    for (const struct reservation *r = context->reservations; r != NULL; r = r->next) {
        const struct mapping *m = mapping_at(r, pointer);
        if (m != NULL) return m->physical->device;
    }
    return context->device;
}

uint64_t virtual_bytes(CUdevice device)
{
    uint64_t bytes = 0;
    for (const struct physical *p = physicals; p != NULL; p = p->next)
        if (p->device == device) bytes += p->bytes;
    return bytes;
}

/* A bit for each device with access, or with access for reading alone. */
static uint8_t devices_of(const struct mapping *m, bool reading_alone)
{
    unsigned devices = 0;
    for (int d = 0; d < MOST_DEVICES; d++)
        if (reading_alone ? m->access[d] == CU_MEM_ACCESS_FLAGS_PROT_READ
                          : m->access[d] != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            devices |= 1u << d;
    return (uint8_t)devices;
}

/* Makes the machine's allocations anew: each run of neighbours with the same access is one. */
static CUresult publish(struct CUctx_st *context, const struct reservation *r)
{
    struct global_memory *memory = &context->machine.memory;
    const struct allocation *old;
    for (uint64_t at = r->base; at < r->base + r->bytes; at += GRANULE)
        if ((old = global_find(memory, at)) != NULL) global_release(memory, old->base);
    for (const struct mapping *m = r->mappings, *next; m != NULL; m = next) {
        size_t bytes = m->bytes;
        for (next = m->next; next != NULL && next->base == m->base + bytes &&
                               memcmp(next->access, m->access, sizeof m->access) == 0;
             next = next->next)
            bytes += next->bytes;
        const struct allocation a = { .base = m->base,
                                      .bytes = bytes,
                                      .host = (void *)(uintptr_t)m->base,
                                      .kind = ALLOCATION_VIRTUAL,
                                      .devices = devices_of(m, false),
                                      .read_only_devices = devices_of(m, true) };
        if (a.devices != 0 && !global_insert(memory, &a)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static void unmap(struct mapping *m)
{
    mmap((void *)(uintptr_t)m->base, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
         0);
    drop(m->physical);
    free(m);
}

void reservations_close(struct CUctx_st *context)
{
    for (struct reservation *r = context->reservations, *next; r != NULL; r = next) {
        next = r->next;
        while (r->mappings != NULL) {
            struct mapping *m = r->mappings;
            r->mappings = m->next;
            unmap(m);
        }
        munmap((void *)(uintptr_t)r->base, r->bytes);
        free(r);
    }
    context->reservations = NULL;
}

static bool properties_valid(const CUmemAllocationProp *p)
{
    enum { PINNED = 1 };
    return p != NULL && p->type == PINNED && p->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           device_check(p->location.id) == CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties, int option)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (granularity == NULL || option < 0 || option > 1 || !properties_valid(properties)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *granularity = GRANULE;
    return driver_leave(result);
}

static CUresult create(struct physical *made, CUdevice device, size_t bytes)
{
    const int file = memfd_create("cudasim", MFD_CLOEXEC);
    *made = (struct physical){ .device = device, .bytes = bytes, .file = file, .users = 1 };
    if (made->file >= 0 && ftruncate(made->file, (off_t)bytes) == 0) return CUDA_SUCCESS;
    if (made->file >= 0) close(made->file);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) result = capture_forbids(context);
    if (result == CUDA_SUCCESS &&
        (handle == NULL || flags != 0 || bytes == 0 || bytes % GRANULE != 0 || !properties_valid(properties)))
        result = properties != NULL && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                         && device_check(properties->location.id) != CUDA_SUCCESS
                     ? CUDA_ERROR_INVALID_DEVICE
                     : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && properties->requestedHandleTypes != 0) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && bytes > memory_left(properties->location.id))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    struct physical *made = result == CUDA_SUCCESS ? malloc(sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && made == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) result = create(made, properties->location.id, bytes);
    if (result == CUDA_SUCCESS) {
        made->number = *handle = ++numbers;
        made->next = physicals;
        physicals = made;
    } else {
        free(made);
    }
    return driver_leave(result);
}

/* Memory that is still mapped stays until it is unmapped. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = driver_enter();
    struct physical *p = result == CUDA_SUCCESS ? find_physical(handle) : NULL;
    if (result == CUDA_SUCCESS && p == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        p->number = 0;
        drop(p);
    }
    return driver_leave(result);
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    (void)wish;                           /* a hint */
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS &&
        (pointer == NULL || flags != 0 || bytes == 0 || bytes % GRANULE != 0 || (alignment & (alignment - 1)) != 0))
        result = CUDA_ERROR_INVALID_VALUE;
    struct reservation *made = result == CUDA_SUCCESS ? malloc(sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && made == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        const uint64_t base =
            global_reserve(&context->machine.memory, bytes, alignment < GRANULE ? GRANULE : alignment);
        void *place = (void *)(uintptr_t)base, *host = MAP_FAILED;
        if (base != 0)
            host =
                mmap(place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (host != place) {
            if (host != MAP_FAILED) munmap(host, bytes);
            result = CUDA_ERROR_OUT_OF_MEMORY;
            free(made);
        } else {
            *made = (struct reservation){ .next = context->reservations, .base = base, .bytes = bytes };
            context->reservations = made;
            *pointer = base;
        }
    }
    return driver_leave(result);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) find_reservation(&context, pointer, 1);
    struct reservation **link = result == CUDA_SUCCESS ? &context->reservations : NULL;
    while (link != NULL && *link != NULL && (*link)->base != pointer) link = &(*link)->next;
    if (result == CUDA_SUCCESS && (*link == NULL || (*link)->bytes != bytes || (*link)->mappings != NULL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct reservation *r = *link;
        *link = r->next;
        munmap((void *)(uintptr_t)r->base, r->bytes);
        free(r);
    }
    return driver_leave(result);
}

/* Where a mapping would stand in the reservation; NULL: something is mapped there. */
static struct mapping **free_place(struct reservation *r, uint64_t base, size_t bytes)
{
    struct mapping **link = &r->mappings;
    while (*link != NULL && (*link)->base < base) {
        if ((*link)->base + (*link)->bytes > base) return NULL;
        link = &(*link)->next;
    }
    return *link != NULL && (*link)->base < base + bytes ? NULL : link;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct physical *p = result == CUDA_SUCCESS ? find_physical(handle) : NULL;
    struct reservation *r = result == CUDA_SUCCESS ? find_reservation(&context, pointer, bytes) : NULL;
    if (result == CUDA_SUCCESS
        && (p == NULL || r == NULL || flags != 0 || offset != 0 || bytes == 0 || bytes % GRANULE != 0
            || pointer % GRANULE != 0 || bytes > p->bytes))
        result = CUDA_ERROR_INVALID_VALUE;
    struct mapping **link = result == CUDA_SUCCESS ? free_place(r, pointer, bytes) : NULL;
    if (result == CUDA_SUCCESS && link == NULL) result = CUDA_ERROR_INVALID_VALUE;
    struct mapping *made = result == CUDA_SUCCESS ? malloc(sizeof *made) : NULL;
    if (result == CUDA_SUCCESS && made == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS
        && mmap((void *)(uintptr_t)pointer, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file, 0)
               == MAP_FAILED) {
        free(made);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        *made = (struct mapping){ .next = *link, .base = pointer, .bytes = bytes, .physical = p };
        *link = made;
        p->users++;
    }
    return driver_leave(result);
}

/* The mappings that lie in the range, which must begin and end with one; NULL: it does not. */
static struct mapping **whole_mappings(struct reservation *r, uint64_t base, size_t bytes)
{
    struct mapping **link = &r->mappings;
    while (*link != NULL && (*link)->base < base) link = &(*link)->next;
    uint64_t at = base;
    for (const struct mapping *m = *link; m != NULL && m->base == at && at < base + bytes; m = m->next) at += m->bytes;
    return at == base + bytes ? link : NULL;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct reservation *r = result == CUDA_SUCCESS && bytes != 0 ? find_reservation(&context, pointer, bytes) : NULL;
    struct mapping **link = r == NULL ? NULL : whole_mappings(r, pointer, bytes);
    if (result == CUDA_SUCCESS && link == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        while (*link != NULL && (*link)->base < pointer + bytes) {
            struct mapping *m = *link;
            *link = m->next;
            unmap(m);
        }
        result = publish(context, r);
    }
    return driver_leave(result);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct reservation *r = result == CUDA_SUCCESS && bytes != 0 ? find_reservation(&context, pointer, bytes) : NULL;
    struct mapping **link = r == NULL ? NULL : whole_mappings(r, pointer, bytes);
    if (result == CUDA_SUCCESS && (link == NULL || access == NULL || count == 0)) result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        const int flags = access[i].flags;
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE
            || device_check(access[i].location.id) != CUDA_SUCCESS)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
                 flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            result = CUDA_ERROR_INVALID_VALUE;
        for (struct mapping *m = *link; result == CUDA_SUCCESS && m != NULL && m->base < pointer + bytes; m = m->next)
            m->access[access[i].location.id] = (uint8_t)flags;
    }
    if (result == CUDA_SUCCESS) result = publish(context, r);
    return driver_leave(result);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct reservation *r = result == CUDA_SUCCESS ? find_reservation(&context, pointer, 1) : NULL;
    if (result == CUDA_SUCCESS && (flags == NULL || location == NULL || r == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    const struct mapping *m = result == CUDA_SUCCESS ? mapping_at(r, pointer) : NULL;
    if (result == CUDA_SUCCESS && (m == NULL || location->type != CU_MEM_LOCATION_TYPE_DEVICE))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = device_check(location->id);
    if (result == CUDA_SUCCESS) *flags = m->access[location->id];
    return driver_leave(result);
}
