/* A stack kept by hand: which functions are active, so that recorded stacks can be compared with it.
 *
 * Functions that take part are called truth_... and say ACTIVE("truth_...") where they begin; they are off the stack when
 * their scope ends, by a return or an exception. After a longjmp, RETURNED() says that everything above has gone. At
 * TOUCH() the stack is written into the log, with the address of a fresh page that is then touched: one page fault.
 *
 * In the log "~" stands where a signal came at any moment: one function more may be active there, which had begun and
 * had not said so, or had ended and had not returned. */
#ifndef SHADOW_H
#define SHADOW_H

#ifdef __cplusplus
extern "C" {
#endif

/* Recorders keep 127 frames of a stack. */
#define SHADOW_DEPTH 120

struct shadow {
	unsigned depth;
	const char *active[SHADOW_DEPTH];
};
extern __thread struct shadow shadow;

/* The stack of this thread, for other languages. */
struct shadow *shadow_of_thread(void);
/* Begins the log of a process image; `generation` counts the images of one process, from 0. */
void shadow_begin(const char *directory, unsigned generation);
/* In a new process: what its parent logged is not its own. */
void shadow_forked(void);
/* Logs the stack and gives the fresh page that is to be touched. */
char *shadow_note(void);
/* The same with a function more: `name` will be active when the page is touched. */
char *shadow_note_for(const char *name);
/* Has the kernel touch a page, from read(2). */
void shadow_touch_by_read(void);
/* A stack that samples may find, innermost function first, or what handlers of signals may put on any of them. */
void shadow_may_have(const char *chain);
void shadow_handlers_may_have(const char *chain);
/* From here to the end of the log, samples have one of these stacks. */
void shadow_window_begins(void);
/* Writes the log. */
void shadow_end(void);

static inline __attribute__((always_inline)) unsigned shadow_enter(const char *name)
{
	unsigned before = shadow.depth;
	shadow.active[before] = name;
	__asm__ volatile("" ::: "memory");
	shadow.depth = before + 1;
	return before;
}

static inline __attribute__((always_inline)) void shadow_leave(const unsigned *before)
{
	__asm__ volatile("" ::: "memory");
	shadow.depth = *before;
}

#define ACTIVE(name) __attribute__((cleanup(shadow_leave))) const unsigned shadow_before = shadow_enter(name)
#define RETURNED() (shadow.depth = shadow_before + 1)
#define TOUCH() (*(volatile char *)shadow_note() = 1)

#ifdef __clang__
#define OWN __attribute__((noinline))
#define TAIL_CALL __attribute__((musttail))
#else
/* No inlining, no clones, no passing of registers that the calling convention does not know. */
#define OWN __attribute__((noipa))
#define TAIL_CALL
#endif

#ifdef __cplusplus
}
#endif
#endif
