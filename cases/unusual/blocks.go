// Blocks of memory in Go: the collector finds that they are free, and the runtime gives pages back to the kernel.
//
//	blocks-go VARIANT [ROUNDS]
//
//	each    in every round a block of 4 MiB is made, every page of it is written, and debug.FreeOSMemory gives it back
//	kept    its twin: one block, made before the rounds
//	garbage as each, without a call: the runtime decides when to collect and what to give back
//
// Prints one line: rounds, the pages that they touch, their minor faults as the kernel counted them.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
)

const (
	page = 4096
	size = 4 << 20
)

// The block that is in use: what only a stack holds may be freed in the middle of a round, or stand on the stack itself.
var block []byte

func minorFaults() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fmt.Fprintln(os.Stderr, "blocks-go:", err)
		os.Exit(2)
	}
	return usage.Minflt
}

//go:noinline
func newBlock() []byte { return make([]byte, size) }

//go:noinline
func fill(block []byte, round int) {
	for at := 0; at < len(block); at += page {
		block[at] = byte(round) | 1
	}
}

//go:noinline
func giveBack() {
	block = nil
	debug.FreeOSMemory()
}

func main() {
	rounds := 100
	if len(os.Args) > 2 {
		rounds, _ = strconv.Atoi(os.Args[2])
	}
	if len(os.Args) < 2 || rounds < 1 || (os.Args[1] != "each" && os.Args[1] != "kept" && os.Args[1] != "garbage") {
		fmt.Fprintln(os.Stderr, "usage: blocks-go each|kept|garbage [ROUNDS]")
		os.Exit(2)
	}
	variant := os.Args[1]
	if variant == "kept" {
		block = newBlock()
		fill(block, 0)
	}
	// The runtime's own start is over.
	runtime.GC()
	faults := minorFaults()
	for round := 0; round < rounds; round++ {
		if variant != "kept" {
			block = newBlock()
		}
		fill(block, round)
		if variant == "each" {
			giveBack()
		}
	}
	faults = minorFaults() - faults
	fmt.Printf("%s rounds=%d pages=%d minflt=%d\n", variant, rounds, rounds*size/page, faults)
}
