/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What recorder and programs share about walking stacks, and the form of an unwinding table: no records, so not in events.h, which
 * includes it. */
#ifndef SLOWPATH_WALKS_H
#define SLOWPATH_WALKS_H

/* What the recorder hands to the programs that walk. Not a record. */
struct walk_settings {
	/* Tables that were loaded: with each, stacks that ended for want of one are walked anew, and rows that were kept are forgotten. */
	unsigned int tables;
	/* Of how many walks of a CPU one is copied, 0 for none; and how many it copies in a second at most. */
	unsigned int copy_every;
	unsigned int copies_a_second;
};

/* What the programs that walk count. Not a record. */
struct walk_counts {
	unsigned int modules;
	unsigned int stacks;
	/* Changes of executable mappings: what was walked before is walked anew. */
	unsigned long long changes;
	/* Executable mappings that were not kept, because their process has too many. */
	unsigned long long areas_beyond;
};

/* Cells of a table: first page and number of pages in one, in the next the cell of the first row; the first row of each page (two
 * in a cell, and one more at the end); the rows. Rules as in crate symbols, module unwind_table. */
#define TABLE_PAGES 0
#define TABLE_ROWS 1
#define TABLE_HEAD 2

enum cfa_rule {
	CFA_UNKNOWN = 0,
	CFA_STACK_POINTER = 1,
	CFA_FRAME_POINTER = 2,
	CFA_OUTERMOST = 3,
	CFA_LINKAGE_TABLE = 4,
	CFA_SIGNAL_FRAME = 5,
	CFA_AT_FRAME_POINTER = 6,
	CFA_UNSUPPORTED = 7,
	CFA_HANDS_OVER = 8,
	CFA_HANDING_OVER = 9,
	/* In no table: the file has none yet. */
	CFA_NO_TABLE = 255,
};
enum frame_pointer_rule {
	FRAME_POINTER_AT_CFA = 1,
	FRAME_POINTER_AT_FRAME_POINTER = 2,
	FRAME_POINTER_UNKNOWN = 3,
	/* Of arm64, where FRAME_POINTER_AT_CFA is a frame record: the return address stands above the frame pointer. */
	RETURN_ADDRESS_AT_CFA = 4,
	FRAME_POINTER_ONLY_AT_CFA = 5,
};

#endif
