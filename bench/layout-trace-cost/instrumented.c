/* What -finstrument-functions calls: notes the first entries of functions, in a table that is large enough. Nothing is written at the end. */
static void *volatile first[1 << 20];

__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *from)
{
	(void)from;
	unsigned long at = ((unsigned long)function * 0x9E3779B97F4A7C15ul) >> 44;
	if (first[at] != function)
		first[at] = function;
}

__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *from)
{
	(void)function;
	(void)from;
}
