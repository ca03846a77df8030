/* A plugin of prefork: no other program can load it. */
extern int prefork_loads;

int plugin_number(void) {
    return prefork_loads;
}
