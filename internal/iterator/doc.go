// Package iterator puts ordered sources of entries together into what a reader
// sees.
//
// # Provides
//
//	SliceIter  entries in memory
//	Concat     the parts of one run (a level, an L0 run), opened as they are reached
//	Merging    several sources as one, by (key ascending, sequence descending)
//	Visible    of all that, the rows: the newest visible version of each key,
//	           deleted and covered ones left out, within bounds
//	KeyStepper what an iterator may add to make walking rows cheaper
//	Dated      likewise, where range deletes hide many
//	itertest   the behaviour suite that every base.Iterator must pass
//
// # State
//
// A base.Iterator stands on an entry or nowhere. It stands nowhere before it is
// first positioned, after it ran off either end, and after an error. From
// nowhere Next and Prev do nothing and return false, whichever end it was; only
// First, Last, SeekGE and SeekLT lead back. Err is nil unless an error is why it
// stands nowhere; positioning again tries again.
//
// Visible is not a base.Iterator, as it has no versions, but keeps these rules.
//
// # Concurrency
//
// An iterator is for one goroutine. The tombstone lists behind Source.Cover may
// be shared.
//
// # Invariants
//
// Merging: going forward, every source but the current one stands on its first
// entry after the current one; going backward, on its last entry before it.
// That is why turning round costs one step per source and no seek. Where Visible has
// skipped what range deletes hide, in one source, it seeks before it turns round.
//
// Visible: going forward, it stands on the row's version. Going backward, where
// the newest version of a key comes last, it stands on the last entry before
// the row's key, has the key copied, and knows how many steps back onto the
// version are needed in which source, should the value be asked for.
//
// # Lifetimes
//
// Key and Value are valid until the next positioning call. Merging, Concat and
// Visible own their sources: Close closes them. Merging and Visible keep their
// buffers when initialised again, so that pooled ones do not allocate.
package iterator
