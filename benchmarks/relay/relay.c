/* The control: the least that a relay of two blocking threads can cost. Usage: relay COMMAND [ARG...]; no capture. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK 65536

extern char **environ;

struct direction {
    int source, sink;
};

static void *pump(void *argument) {
    struct direction *way = argument;
    char *chunk = malloc(CHUNK);
    ssize_t count;
    while ((count = read(way->source, chunk, CHUNK)) > 0)
        for (ssize_t sent = 0, written; sent < count; sent += written)
            if ((written = write(way->sink, chunk + sent, count - sent)) < 0)
                return NULL;
    close(way->sink);
    return NULL;
}

int main(int argc, char **argv) {
    int down[2], up[2], status;
    pid_t child;
    pthread_t thread;
    posix_spawn_file_actions_t actions;
    if (argc < 2 || pipe(down) || pipe(up) || posix_spawn_file_actions_init(&actions))
        return 2;
    posix_spawn_file_actions_adddup2(&actions, down[0], 0);
    posix_spawn_file_actions_adddup2(&actions, up[1], 1);
    for (int end = 0; end < 2; end++) {
        posix_spawn_file_actions_addclose(&actions, down[end]);
        posix_spawn_file_actions_addclose(&actions, up[end]);
    }
    if (posix_spawnp(&child, argv[1], &actions, NULL, argv + 1, environ))
        return 127;
    close(down[0]);
    close(up[1]);
    struct direction to_child = {0, down[1]}, from_child = {up[0], 1};
    if (pthread_create(&thread, NULL, pump, &to_child))
        return 2;
    pump(&from_child);
    if (waitpid(child, &status, 0) < 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
