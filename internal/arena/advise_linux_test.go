//go:build linux && !arena_heap

package arena

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// hasFlag reports whether the kernel's area that begins at or contains b carries
// flag, one of the two-letter codes of VmFlags in proc(5).
func hasFlag(t *testing.T, b []byte, flag string) bool {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var low, high uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &low, &high); n == 2 {
			inside = low <= address(b) && address(b) < high
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return strings.Contains(flags+" ", " "+flag+" ")
		}
	}
	t.Skip("no flags in smaps")
	return false
}

// Huge pages are asked for behind the first chunk while there is room for whole ones. Once
// frames are given back one by one they are forbidden, or the kernel would fill the holes.
func TestHeapAdvice(t *testing.T) {
	noLeak(t)
	b := NewBudget(3 * HugeBytes)
	h := NewHeap(b, ClassPages)
	first, x := mustAlloc(t, h, HugeBytes), mustAlloc(t, h, frameBytes)
	if hasFlag(t, first, "hg") {
		t.Error("the first chunk asks for huge pages")
	}
	if !hasFlag(t, x, "hg") {
		t.Skip("the kernel has no huge pages")
	}
	if h.Scavenge(int64(frameBytes)); hasFlag(t, x, "hg") || !hasFlag(t, x, "nh") {
		t.Error("a chunk with holes still asks for huge pages")
	}
	mustFree(t, h, x)
	h.Scavenge(HugeBytes)
	b.Add(ClassMemtable, 2*HugeBytes-int64(frameBytes)) // a frame less than fits
	y := mustAlloc(t, h, frameBytes)
	if !hasFlag(t, y, "nh") {
		t.Error("a chunk beyond the budget may be backed by huge pages")
	}
	mustFree(t, h, y)
	mustFree(t, h, first)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}
