package arena

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// denyMemory lets the process have no more than n bytes beside what it has, until the test ends or give is called.
func denyMemory(t *testing.T, n uint64) (give func()) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmData:")
	var data uint64 // KiB
	if _, err := fmt.Sscan(after, &data); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &before); err != nil {
		t.Fatal(err)
	}
	give = func() { unix.Setrlimit(unix.RLIMIT_DATA, &before) }
	t.Cleanup(give)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: data<<10 + n, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return give
}

// fillDenied allocates pages until there is an error, which it returns.
func fillDenied(h *Heap, limit int64) (pages [][]byte, err error) {
	for range 10_000 {
		b, err := h.AllocWithin(64<<10, limit)
		if err != nil {
			return pages, err
		}
		pages = append(pages, b)
	}
	return pages, nil
}

// What the system does not give is no room, as what the limit does not allow, so that whoever can makes some.
func TestHeapWhereTheSystemGivesNoMore(t *testing.T) {
	if !CanDetach {
		t.Skip("NOT TESTED: a system that gives no more memory: it is of the Go heap here")
	}
	const limit = 600 << 20
	noLeak(t)
	b := NewBudget(limit)
	h := NewHeap(b, ClassPages)
	give := denyMemory(t, 48<<20)
	pages, err := fillDenied(h, limit)
	large, errLarge := h.AllocWithin(16<<20, limit)
	any, errAny := h.Alloc(16 << 20)
	give()
	if !errors.Is(err, ErrNoRoom) || !errors.Is(errLarge, ErrNoRoom) {
		t.Errorf("%d pages, then %v; a large one: %v", len(pages), err, errLarge)
	}
	if errAny == nil || errors.Is(errAny, ErrNoRoom) {
		t.Errorf("at any price: %v", errAny)
	}
	for _, page := range append(pages, large, any) {
		if page != nil {
			mustFree(t, h, page)
		}
	}
	h.check(t)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// What the process may have of its own is one of the limits, and none is where there is none.
func TestProcessLimits(t *testing.T) {
	for _, what := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
		var before unix.Rlimit
		if err := unix.Getrlimit(what, &before); err != nil {
			t.Fatal(err)
		}
		had := len(processLimits())
		const limit = 1 << 50
		if before.Cur != unix.RLIM_INFINITY || before.Max != unix.RLIM_INFINITY {
			t.Skip("NOT TESTED: the limits of the process: there is one already")
		}
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		got := processLimits()
		unix.Setrlimit(what, &before)
		if len(got) != had+1 || !slices.Contains(got, limit) {
			t.Errorf("limits %v, want %d among them", got, int64(limit))
		}
	}
}
