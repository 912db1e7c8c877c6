/* The upstream of every variant: HTTP/1.1 with a thread for each connection; it prints the port that it listens on.
 *
 * Usage: server FILE
 *   POST /mcp               a ping, whose params come back as its result
 *   GET  /big               FILE, a JSON body in gzip
 *   GET  /events/N/GAP      N server-sent events, GAP microseconds apart, each with the clock at its write */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ROOM 65536
#define PING ",\"method\":\"ping\",\"params\":"
#define RESULT ",\"result\":"
#define HEAD "HTTP/1.1 200 OK\r\ndate: Fri, 20 Nov 2026 19:15:00 GMT\r\nserver: bench\r\nmcp-session-id: 9f2c\r\n"
#define EVENT                                                                             \
    "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":" \
    "{\"progressToken\":1,\"progress\":%ld,\"message\":\"%020lld\"}}\n\n"

static char *big;
static size_t big_size;

static int say(int to, const char *bytes, size_t size) {
    while (size) {
        ssize_t said = write(to, bytes, size);
        if (said <= 0)
            return 0;
        bytes += said;
        size -= said;
    }
    return 1;
}

static int pong(int to, char *body, char *end) {
    char head[512], *ping = memmem(body, end - body, PING, strlen(PING));
    if (!ping)
        return 0;
    char *params = ping + strlen(PING);
    struct iovec parts[] = {{head, 0}, {body, ping - body}, {RESULT, strlen(RESULT)}, {params, end - params}};
    size_t size = parts[1].iov_len + parts[2].iov_len + parts[3].iov_len;
    parts[0].iov_len = sprintf(head, HEAD "content-type: application/json\r\ncontent-length: %zu\r\n\r\n", size);
    return writev(to, parts, 4) == (ssize_t)(parts[0].iov_len + size);
}

static int send_big(int to) {
    char head[512];
    int size = sprintf(head,
                       HEAD "content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %zu\r\n\r\n",
                       big_size);
    return say(to, head, size) && say(to, big, big_size);
}

static int send_events(int to, long count, long gap) {
    static const char head[] =
        HEAD "content-type: text/event-stream\r\ncache-control: no-store\r\ntransfer-encoding: chunked\r\n\r\n";
    struct timespec pause = {gap / 1000000, gap % 1000000 * 1000}, now;
    struct pollfd peer = {to, POLLIN, 0};
    char event[512], chunk[600];
    if (!say(to, head, strlen(head)))
        return 0;
    for (long n = 0; n < count; n++) {
        if (n && ppoll(&peer, 1, &pause, NULL)) /* nothing is asked meanwhile: the client has left */
            return 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int size = sprintf(event, EVENT, n, now.tv_sec * 1000000000LL + now.tv_nsec);
        if (!say(to, chunk, sprintf(chunk, "%x\r\n%s\r\n", size, event)))
            return 0;
    }
    return say(to, "0\r\n\r\n", 5);
}

static void *serve(void *argument) {
    int peer = (int)(long)argument, on = 1;
    char *request = malloc(ROOM + 1), *body, *field;
    size_t held = 0;
    ssize_t came;
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (held < ROOM && (came = read(peer, request + held, ROOM - held)) > 0) {
        request[held += came] = 0;
        if (!(body = strstr(request, "\r\n\r\n")))
            continue;
        body += 4;
        long count, gap, length = (field = strcasestr(request, "\r\ncontent-length:")) ? atol(field + 17) : 0;
        if (body + length > request + held)
            continue;
        if (sscanf(request, "GET /events/%ld/%ld", &count, &gap) == 2 ? !send_events(peer, count, gap)
            : !strncmp(request, "GET /big", 8)                        ? !send_big(peer)
                                                                      : !pong(peer, body, body + length))
            break;
        held = 0;
    }
    close(peer);
    free(request);
    return NULL;
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), peer;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    signal(SIGPIPE, SIG_IGN); /* a client that leaves ends its own thread */
    if (!file || fseek(file, 0, SEEK_END) || !(big = malloc(big_size = ftell(file))))
        return 1;
    rewind(file);
    if (fread(big, 1, big_size, file) != big_size || bind(listener, (struct sockaddr *)&address, size) ||
        listen(listener, 1024) || getsockname(listener, (struct sockaddr *)&address, &size))
        return 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    while ((peer = accept(listener, NULL, NULL)) >= 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)(long)peer))
            close(peer);
        else
            pthread_detach(thread);
    }
    return 1;
}
