/* What a product runs at its own start: can the users who need them use its compiled and cached files?
 *
 * Link with -lslowpath_guard_c. Documentation: docs/guard.md. */
#ifndef SLOWPATH_GUARD_H
#define SLOWPATH_GUARD_H

#ifdef __cplusplus
extern "C" {
#endif

/* Run the commands of the policy, each at most once a version. Nothing is changed without. */
#define SLOWPATH_GUARD_REPAIR 1u

/* What slowpath_guard_check returns. */
#define SLOWPATH_GUARD_FINE 0       /* everything is not_needed, usable or repaired */
#define SLOWPATH_GUARD_NOT_USABLE 1 /* something cannot be used, or that cannot be decided */
#define SLOWPATH_GUARD_WRONG 2      /* the policy, or an argument: *error says what */
#define SLOWPATH_GUARD_CANNOT 3     /* this machine cannot, or a repair may not be run: *error or the lines say why */

/* Checks the artifacts of a policy for the users who need them.
 *
 * policy  path of the policy, as slowpath artifacts guard takes it.
 * flags   0 or SLOWPATH_GUARD_REPAIR.
 * user    the product's own pseudonym of its user, which the lines have as "user"; may be NULL.
 * lines   gets JSON lines, one for each file and user (docs/schemas/guard-line.json), or NULL where *error is set;
 *         may be NULL.
 * error   gets one line of words, or NULL; may be NULL.
 *
 * *lines and *error belong to the caller, who gives each to slowpath_guard_free. Both are UTF-8.
 * May be called from several threads; it keeps nothing between calls. It blocks until a repair that it runs has ended.
 * Called as root it forks a process that looks, and reaps it: a SIGCHLD handler that waits for any child disturbs it. */
int slowpath_guard_check(const char *policy, unsigned int flags, const char *user, char **lines, char **error);

/* Frees what slowpath_guard_check gave. NULL is allowed. */
void slowpath_guard_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
