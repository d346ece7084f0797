#include <stdint.h>
typedef struct Thread {
    int number, state, turn;
    uint32_t tid[3], ctaid[3], ntid[3], nctaid[3];
    void (*barrier)(struct Thread *);
    uint32_t (*shuffle)(struct Thread *, uint32_t value, int from);
} Thread;
