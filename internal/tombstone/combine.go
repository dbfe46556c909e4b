package tombstone

import "bytes"

// Merge returns a list of the tombstones of all lists.
func Merge(lists ...*List) *List {
	var only *List
	var spans []Tombstone
	for _, l := range lists {
		if l == nil {
			continue
		}
		if only == nil && spans == nil {
			only = l
			continue
		}
		if only != nil {
			spans, only = only.Spans(), nil
		}
		spans = append(spans, l.Spans()...)
	}
	if only != nil {
		return only
	}
	return Build(spans)
}

// Clip returns the part of the list within [low, high); nil bounds are no bounds.
func (l *List) Clip(low, high []byte) *List {
	if l == nil {
		return nil
	}
	if (low == nil || bytes.Compare(low, l.FirstLow()) <= 0) && (high == nil || bytes.Compare(high, l.LastHigh()) >= 0) {
		return l
	}
	spans := l.Spans()
	for i := range spans {
		if low != nil && bytes.Compare(spans[i].Low, low) < 0 {
			spans[i].Low = low
		}
		if high != nil && bytes.Compare(spans[i].High, high) > 0 {
			spans[i].High = high
		}
	}
	return Build(spans)
}

// Retain returns the part of the list that a compaction must keep: of each
// fragment what Stripes.Newest keeps of its sequences. Its size is at most the
// number of fragments times one more than that of snapshots.
func (l *List) Retain(s Stripes, bottom bool) *List {
	if l == nil {
		return nil
	}
	if l.nest != nil {
		return Build(l.nest.retain(s, bottom))
	}
	var kept []Tombstone
	var seqs []uint64
	for _, f := range l.frags {
		seqs = s.Newest(seqs[:0], f.Seqs, bottom)
		for _, q := range seqs {
			kept = append(kept, Tombstone{f.Low, f.High, q})
		}
	}
	return Build(kept)
}
