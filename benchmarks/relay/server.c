/* The child of every variant: answers initialize and ping; see server.py, which says the same in Python.
 *
 * Usage: server                 a ping's params come back as its result
 *        server FILE COUNT      a ping is answered by COUNT copies of FILE, its number 1000000 counted up */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHUNK 65536
#define NUMBER "1000000"
#define PING ",\"method\":\"ping\",\"params\":"
#define RESULT ",\"result\":"
#define INITIALIZE "\"method\":\"initialize\""
#define WELCOME                                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"logging\":{}}," \
    "\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"

static void say(const char *bytes, size_t size) {
    if (write(1, bytes, size) != (ssize_t)size)
        exit(1);
}

static void answer(char *line, size_t size, char *ping) {
    char *params = ping + strlen(PING);
    struct iovec parts[] = {{line, ping - line}, {RESULT, strlen(RESULT)}, {params, line + size - params}};
    if (writev(1, parts, 3) != (ssize_t)(size - strlen(PING) + strlen(RESULT)))
        exit(1);
}

static void stream(const char *path, long count) {
    static char frame[CHUNK];
    char digits[32];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(frame, 1, CHUNK, file) : 0;
    char *number = memmem(frame, size, NUMBER, strlen(NUMBER));
    if (!number)
        exit(1);
    for (long n = 0; n < count; n++) {
        memcpy(number, digits, snprintf(digits, sizeof digits, "%ld", 1000000 + n));
        say(frame, size);
    }
}

int main(int argc, char **argv) {
    static char chunk[CHUNK];
    char *line = NULL, *ping;
    size_t room = 0;
    ssize_t size;
    setvbuf(stdin, chunk, _IOFBF, CHUNK);
    while ((size = getline(&line, &room, stdin)) > 0) {
        size_t head = size < 128 ? size : 128;
        if (memmem(line, head, INITIALIZE, strlen(INITIALIZE)))
            say(WELCOME, strlen(WELCOME));
        else if ((ping = memmem(line, head, PING, strlen(PING)))) {
            if (argc == 3)
                stream(argv[1], atol(argv[2]));
            else
                answer(line, size, ping);
        }
    }
    return 0;
}
