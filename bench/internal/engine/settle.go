package engine

import "time"

// Background work is asked for again and again, because engines offer no way to
// be told. It has ended when there was none for settledFor: between a flush and the
// compaction that follows from it there is a moment without either.
const (
	settleEvery = time.Millisecond
	settledFor  = 50 * time.Millisecond
)

// settle waits until idle says yes for some time, and returns since when.
func settle(idle func() (bool, error)) (since time.Time, err error) {
	for {
		look := time.Now()
		yes, err := idle()
		switch {
		case err != nil:
			return look, err
		case !yes:
			since = time.Time{}
		case since.IsZero():
			since = look
		case look.Sub(since) >= settledFor:
			return since, nil
		}
		time.Sleep(settleEvery)
	}
}
