package compact

import "sync/atomic"

// A store that is scanned does not wait for quiet to be merged. A row put together from
// several sources takes some 300 ns longer than one of a single table, and a byte that is
// merged 4 to 8 ns: once scans have walked so many rows that a merge costs no more than
// they have, it pays from then on (as skis are bought once the rent has come to their
// price: Karlin et al., Algorithmica 3, 1988).

const (
	// walkedBytes is how many bytes of a merge a row pays for that scans have walked.
	walkedBytes = 40
	// leastWalked rows are walked before anything pays.
	leastWalked = 1 << 14
)

// Walked counts rows that scans have put together from several sources, and says which
// merges they pay for. Any goroutine may call Note, one at a time the others. The zero
// value has none.
type Walked struct{ rows atomic.Int64 }

// Note counts n rows and reports whether to look what they pay for: now and then.
func (w *Walked) Note(n int) bool {
	now := w.rows.Add(int64(n))
	return now/leastWalked != (now-int64(n))/leastWalked
}

// Any reports whether they may pay for something.
func (w *Walked) Any() bool { return w.rows.Load() >= leastWalked }

// PayFor reports whether the rows pay for a merge of so many bytes, of the bytes held in
// all: they are never worth more than two merges of everything.
func (w *Walked) PayFor(bytes, held int64) bool {
	rows := w.rows.Load()
	if most := max(2*held/walkedBytes, leastWalked); rows > most {
		w.rows.Add(most - rows)
		rows = most
	}
	return rows >= max(bytes/walkedBytes, leastWalked)
}

// Spend takes away what a merge of so many bytes costs.
func (w *Walked) Spend(bytes int64) { w.rows.Add(-bytes / walkedBytes) }
