package prefetch

// Ahead is how far ahead of a walk forward along rows their memory is brought on its way: a few rows at first,
// which may be all that is wanted, then more. The zero value is for a walk that begins anywhere.
type Ahead struct {
	from int // row that the walk came to when rows were brought last
	span int // how many rows further it is time again
	next int // row: those before it have had their turn
	rows int // ahead of where the walk is
	most int
}

const (
	firstRows = 2
	mostRows  = 16
	// aheadBytes are on their way at a time, of long rows: when they are wanted they have come, and are
	// still there (twelve KiB gain nothing).
	aheadBytes = 4 << 10
)

// Begin begins a walk at a row, which is wanted at once.
func (a *Ahead) Begin(row int) { *a = Ahead{from: row, next: row + 1, rows: firstRows, most: mostRows} }

// Due reports whether to call Next when the walk comes to a row: not for each, but before it comes to the last
// of those that were brought.
func (a *Ahead) Due(row int) bool { return uint(row-a.from) >= uint(a.span) }

// Next returns the rows to bring on their way when the walk comes to one, of n: from the first up to, not
// including, the second. Each is returned once, those that the walk has passed over are not. Who comes to a row
// far before those that have had their turn begins another walk.
func (a *Ahead) Next(row, n int) (from, to int) {
	if a.most == 0 || a.next > row+1+mostRows {
		a.Begin(row - 1)
	}
	from = min(max(a.next, row), n)
	to = max(min(row+1+a.rows, n), from)
	if a.from, a.span = row, 1; a.rows == mostRows { // short rows, several at a time: that takes longer than they do
		a.span = mostRows / 2
	}
	a.next, a.rows = to, min(2*a.rows, a.most)
	return from, to
}

// Took says how many bytes of the last row were brought: the longer, the fewer rows.
func (a *Ahead) Took(bytes int) {
	a.most = max(1, min(mostRows, aheadBytes/max(bytes, 1)))
	a.rows = min(a.rows, a.most)
}
