/* A driver for a GPU that is not here: the processor runs the kernels.

   It is built as libcuda.so.1, and cuda.bindings finds it where LD_LIBRARY_PATH points. Memory of the "GPU" is
   memory of the host, each piece with a page behind it that nobody may touch; what is not written yet is NaN.
   Kernels come as PTX. `ptx.py`, which `on_stand_in.py` registers here, makes a shared library of each. The
   threads of a block take turns: each runs until it waits for others. A graph is a list of launches.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "thread.h"

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, NOT_FOUND = 500 };
#define API __attribute__((visibility("default"))) int
#define PAGE 4096ull
#define CONTEXT ((void *)0xC0)

/* What tests read and set. */
struct {
    uint64_t live, most, limit, allocations, uploads, downloads, copies, launches, replays, graphs, waits, pools;
} counts = {.limit = -1, .pools = 1};
static const char *(*translate)(const char *);  /* from PTX to the path of a shared library */
API stand_in(const char *(*function)(const char *), void **where) { translate = function; *where = &counts; return OK; }

static int started;
static __thread void *current;
#define ENTERED if (!started) return NOT_INITIALIZED; if (!current) return INVALID_CONTEXT

API cuInit(unsigned flags) { started = 1; return OK; }
API cuDriverGetVersion(int *version) { *version = 13000; return OK; }
API cuDeviceGetCount(int *count) { *count = 1; return OK; }
API cuDeviceGet(int *device, int ordinal) { if (!started) return NOT_INITIALIZED; *device = 0; return ordinal ? 101 : OK; }
API cuDeviceGetName(char *name, int length, int device) { strncpy(name, "a stand-in on the processor", length); return OK; }
API cuDevicePrimaryCtxRetain(void **context, int device) { *context = CONTEXT; return OK; }
API cuCtxSetCurrent(void *context) { current = context; return OK; }
API cuCtxGetCurrent(void **context) { *context = current; return OK; }
API cuCtxSynchronize(void) { ENTERED; counts.waits++; return OK; }
API cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 2 : attribute == 115 ? (int)counts.pools : 0;
    return OK;
}
API cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = (void *)0xB0; return OK; }
API cuMemPoolSetAttribute(void *pool, int attribute, void *value) { return attribute == 4 && *(uint64_t *)value == -1ull ? OK : INVALID_VALUE; }
API cuMemPoolTrimTo(void *pool, size_t bytes) { return OK; }
API cuMemGetInfo_v2(size_t *left, size_t *total) { ENTERED; *total = counts.limit; *left = counts.limit - counts.live; return OK; }

/* Memory: a line with its size, then the pages with the numbers, then a page that nobody may touch. */
static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }
API cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    ENTERED;
    if (!bytes) return INVALID_VALUE;
    if (counts.live + bytes > counts.limit) return OUT_OF_MEMORY;
    char *base = mmap(NULL, PAGE + pages(bytes + 15) + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return OUT_OF_MEMORY;
    *(size_t *)base = bytes;
    memset(base + PAGE, 0xFF, pages(bytes + 15));
    mprotect(base + PAGE + pages(bytes + 15), PAGE, PROT_NONE);
    *address = (uint64_t)(base + PAGE + pages(bytes + 15)) - (bytes + 15) / 16 * 16;
    counts.live += bytes, counts.allocations++;
    if (counts.live > counts.most) counts.most = counts.live;
    return OK;
}
API cuMemFree_v2(uint64_t address) {
    ENTERED;
    /* The line with the size is some pages before: walk back to the one that says how far it is. */
    for (char *base = (char *)(address / PAGE * PAGE - PAGE);; base -= PAGE) {
        size_t bytes = *(size_t *)base;
        if ((uint64_t)(base + PAGE + pages(bytes + 15)) - (bytes + 15) / 16 * 16 == address) {
            counts.live -= bytes;
            return munmap(base, PAGE + pages(bytes + 15) + PAGE) ? INVALID_VALUE : OK;
        }
    }
}
API cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) { return cuMemAlloc_v2(address, bytes); }
API cuMemFreeAsync(uint64_t address, void *stream) { return cuMemFree_v2(address); }
API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) { ENTERED; counts.uploads++; memcpy((void *)to, from, bytes); return OK; }
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) { ENTERED; counts.copies++; memcpy((void *)to, (void *)from, bytes); return OK; }
API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { ENTERED; counts.downloads++; memcpy(to, (void *)from, bytes); return OK; }

/* Kernels */
API cuModuleLoadData(void **module, const void *image) {
    ENTERED;
    const char *path = translate(image);
    *module = path ? dlopen(path, RTLD_NOW) : NULL;
    return *module ? OK : 218;  /* invalid PTX */
}
API cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = strcmp(name, "kernel") ? NULL : module;
    return *function ? OK : NOT_FOUND;
}

#define STACK 65536
enum { RUNS, AT_BARRIER, IN_WARP, DONE };
static Thread threads[1024];
static ucontext_t contexts[1024], scheduler;
static char *stacks;
static void (*body)(Thread *, void **);
static void **arguments;

static void run(int i) { body(&threads[i], arguments); threads[i].state = DONE; swapcontext(&contexts[i], &scheduler); }
static void wait_for(Thread *t, int state) { t->state = state; swapcontext(&contexts[t->number], &scheduler); }
static void barrier(Thread *t) { wait_for(t, AT_BARRIER); }
/* Two rows of slots in turn: nobody overwrites a value that another thread of the warp has yet to read. */
static uint32_t slots[2][1024];
static uint32_t shuffle(Thread *t, uint32_t value, int from) {
    uint32_t *row = slots[t->turn ^= 1];
    row[t->number] = value;
    wait_for(t, IN_WARP);
    return from < 0 || from > 31 ? value : row[t->number / 32 * 32 + from];
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int launch(void *f, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, void **parameters);

/* Graphs: while the only other stream records, its launches are noted with their arguments, of 8 bytes each. */
typedef struct Node { void *f; unsigned grid[2], block[3]; uint64_t values[64]; void *places[64]; struct Node *next; } Node;
#define STREAM ((void *)0x5)
static struct { Node *first, **last; int on; } record;

API cuStreamCreate(void **stream, unsigned flags) { ENTERED; *stream = STREAM; return flags == 1 ? OK : INVALID_VALUE; }
API cuStreamBeginCapture_v2(void *stream, int mode) {
    ENTERED;
    if (stream != STREAM || record.on) return INVALID_VALUE;
    record.first = NULL, record.last = &record.first, record.on = 1;
    return OK;
}
API cuStreamEndCapture(void *stream, Node **graph) { *graph = record.first, record.on = 0; return stream == STREAM ? OK : INVALID_VALUE; }
API cuGraphInstantiateWithFlags(Node **executable, Node *graph, uint64_t flags) { *executable = graph, counts.graphs++; return OK; }
API cuGraphDestroy(Node *graph) { return OK; }
API cuGraphExecDestroy(Node *node) { for (Node *next; node; node = next) next = node->next, free(node); counts.graphs--; return OK; }

static int recorded(void *f, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, void **parameters) {
    int count = *(int *)dlsym(f, "parameters");
    if (!record.on || count > 64) return INVALID_VALUE;
    Node *node = *record.last = malloc(sizeof *node);
    *node = (Node){.f = f, .grid = {gx, gy}, .block = {bx, by, bz}};
    for (int i = 0; i < count; i++) memcpy(node->places[i] = &node->values[i], parameters[i], 8);
    record.last = &node->next;
    return OK;
}

API cuGraphLaunch(Node *node, void *stream) {
    ENTERED;
    if (stream) return INVALID_VALUE;
    pthread_mutex_lock(&one_at_a_time);
    counts.replays++;
    for (; node; node = node->next)
        launch(node->f, node->grid[0], node->grid[1], node->block[0], node->block[1], node->block[2], node->places);
    pthread_mutex_unlock(&one_at_a_time);
    return OK;
}

API cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    ENTERED;
    unsigned count = bx * by * bz;
    if (!gx || gy > 65535 || !gy || gz != 1 || count < 1 || count > 1024 || shared || extra) return INVALID_VALUE;
    if (stream) return recorded(f, gx, gy, bx, by, bz, parameters);
    pthread_mutex_lock(&one_at_a_time);
    counts.launches++;
    int status = launch(f, gx, gy, bx, by, bz, parameters);
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}

static int launch(void *f, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, void **parameters) {
    unsigned count = bx * by * bz;
    body = dlsym(f, "body");
    void (*poison)(void) = dlsym(f, "poison");
    int waits = *(int *)dlsym(f, "waits");
    arguments = parameters;
    if (waits && !stacks) stacks = malloc(1024 * STACK);
    for (unsigned y = 0; y < gy; y++)
        for (unsigned x = 0; x < gx; x++) {
            poison();
            for (unsigned i = 0; i < count; i++) {
                threads[i] = (Thread){.number = i, .tid = {i % bx, i / bx % by, i / bx / by}, .ctaid = {x, y, 0},
                    .ntid = {bx, by, bz}, .nctaid = {gx, gy, 1}, .barrier = barrier, .shuffle = shuffle};
                if (!waits) { body(&threads[i], parameters); continue; }
                getcontext(&contexts[i]);
                contexts[i].uc_stack.ss_sp = stacks + i * STACK;
                contexts[i].uc_stack.ss_size = STACK;
                makecontext(&contexts[i], (void (*)(void))run, 1, i);
            }
            for (unsigned done = 0; waits && done < count;) {
                for (unsigned i = 0; i < count; i++)
                    if (threads[i].state == RUNS) {
                        swapcontext(&scheduler, &contexts[i]);
                        done += threads[i].state == DONE;
                    }
                unsigned released = 0;
                for (unsigned warp = 0; warp < count; warp += 32) {
                    unsigned end = warp + 32 < count ? warp + 32 : count, all = end - warp == 32;
                    for (unsigned i = warp; i < end; i++) all &= threads[i].state == IN_WARP;
                    for (unsigned i = warp; all && i < end; i++) threads[i].state = RUNS, released++;
                }
                unsigned at = 0;
                for (unsigned i = 0; i < count; i++) at += threads[i].state == AT_BARRIER;
                if (at && at == count) /* all of them, or a GPU would hang */
                    for (unsigned i = 0; i < count; i++) threads[i].state = RUNS, released++;
                if (!released && done < count) return 719; /* a launch that never ends */
            }
        }
    return OK;
}

API cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    char later[200] = {0};
    strncat(strncpy(later, name, 180), "_v2", 4);
    void *self = dlopen("libcuda.so.1", RTLD_NOW);
    *found = strcmp(name, "cuGetProcAddress") ? dlsym(self, later) : (void *)cuGetProcAddress_v2;
    if (!*found) *found = dlsym(self, name);
    if (status) *status = *found ? 0 : 1;
    return *found ? OK : NOT_FOUND;
}
API cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) { return cuGetProcAddress_v2(name, found, version, flags, NULL); }
