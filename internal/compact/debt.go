package compact

import "github.com/cairndb/cairn/internal/manifest"

// Debt estimates how many bytes have to be read and written again until Pick, with
// the same inputs, has nothing left to do. It is 0 exactly
// if Pick returns no job then. With Idle false it counts urgent work only.
func Debt(v *manifest.Version, in Inputs) int64 {
	job, ok := Pick(v, in)
	if !ok {
		return 0
	}
	p := newPicker(v, in)
	debt := p.urgentDebt()
	if in.Idle {
		debt += p.idleDebt()
	}
	return max(debt, job.Bytes())
}

// urgentDebt follows the bytes that are too many down the levels: in each they are
// rewritten together with what they meet there.
func (p *picker) urgentDebt() (debt int64) {
	excess := int64(0)
	if p.score[0] >= 1 {
		excess = p.bytes[0]
		debt += excess + min(p.bytes[p.base], int64(p.in.Multiplier)*excess)
	}
	for level := p.base; level < manifest.Bottom; level = p.next[level] {
		excess = max(excess+p.bytes[level]-p.target[level], 0)
		debt += excess + min(p.bytes[p.next[level]], int64(p.in.Multiplier)*excess)
	}
	return debt
}

// idleDebt counts what lies above the bottom beyond its share, and garbage.
func (p *picker) idleDebt() (debt int64) {
	_, sum := p.weights()
	if excess := sum - p.bytes[manifest.Bottom]/spareShare; excess > 0 {
		above := p.total() - p.bytes[manifest.Bottom]
		debt += min(excess, above) + min(p.bytes[manifest.Bottom], int64(p.in.Multiplier)*excess)
	}
	for _, t := range p.v.Levels[manifest.Bottom] {
		if p.garbage(t) > 0 || p.quick(t) {
			debt += t.Size
		}
	}
	return debt
}
