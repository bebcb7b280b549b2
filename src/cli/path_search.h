/* The file that a command name stands for. */
#ifndef SM_CLI_PATH_SEARCH_H
#define SM_CLI_PATH_SEARCH_H

/* Looks through PATH as execvp does; a name with a slash is taken as it is. NULL when there is none;
   free with free(). Whether it can be executed is known only by trying. */
char *sm_find_program(const char *name);

/* a, b and c in one string; free with free(). */
char *sm_concat(const char *a, const char *b, const char *c);

#endif
