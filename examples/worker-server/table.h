/* What every worker needs: a table of primes, which takes some tens of ms to build. */
void table_build(void);
unsigned table_nth(unsigned n);
