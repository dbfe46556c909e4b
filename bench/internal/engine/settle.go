package engine

import "time"

// Background work is asked for again and again, because engines offer no way to
// be told. It has ended when it was found to be nothing settledLooks times in a
// row: between a flush and the compaction that follows from it there is a moment
// without either.
const (
	settleEvery  = 10 * time.Millisecond
	settledLooks = 5
)

// settle waits until idle says yes several times in a row.
func settle(idle func() (bool, error)) error {
	for quiet := 0; quiet < settledLooks; {
		yes, err := idle()
		if err != nil {
			return err
		}
		quiet++
		if !yes {
			quiet = 0
		}
		time.Sleep(settleEvery)
	}
	return nil
}
