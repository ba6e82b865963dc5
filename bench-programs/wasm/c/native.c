// Runs a program natively: prints `run` of each argument.
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        printf("%lld\n", (long long)run((int32_t)atoi(argv[i])));
    return 0;
}
