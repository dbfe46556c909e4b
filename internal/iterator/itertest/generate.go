package itertest

import (
	"fmt"
	"math/rand/v2"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
)

// Entries returns n random entries in order. Their sequences are 1..n, so that
// inserting them by sequence builds the same set. Keys are not empty; some have
// several versions; deletes have no value.
func Entries(r *rand.Rand, n int) []iterator.Entry {
	key := keyStyles[r.IntN(len(keyStyles))]
	versions := 1 + r.IntN(4)
	entries := make([]iterator.Entry, n)
	seqs := r.Perm(n)
	var last []byte
	for i := range entries {
		if last == nil || r.IntN(versions) == 0 {
			last = key(r, n)
		}
		e := iterator.Entry{Key: last, Seq: uint64(seqs[i] + 1), Kind: base.KindPut}
		if r.IntN(5) == 0 {
			e.Kind = base.KindDelete
		} else {
			e.Value = value(r, e.Seq)
		}
		entries[i] = e
	}
	iterator.Sort(entries)
	return entries
}

var keyStyles = []func(r *rand.Rand, n int) []byte{
	// Dense numbers behind a long common prefix.
	func(r *rand.Rand, n int) []byte { return fmt.Appendf(nil, "\x00user/profile/%06d", r.IntN(2*n+1)) },
	// Numbers that begin to differ within the second eight bytes.
	func(r *rand.Rand, n int) []byte { return fmt.Appendf(nil, "\x00order%012d", r.IntN(2*n+1)) },
	// Tails of any length behind eight common bytes.
	func(r *rand.Rand, n int) []byte {
		k := []byte("\x00common/")
		for range r.IntN(12) {
			k = append(k, "\x00ab\xff"[r.IntN(4)])
		}
		return k
	},
	// Few short strings of few letters: many are prefixes of others.
	func(r *rand.Rand, n int) []byte {
		k := make([]byte, 1+r.IntN(6))
		for i := range k {
			k[i] = "\x00ab\xff"[r.IntN(4)]
		}
		return k
	},
	// Random bytes of any length around the eight that merging compares first.
	func(r *rand.Rand, n int) []byte {
		k := make([]byte, 1+r.IntN(20))
		for i := range k {
			k[i] = byte(r.Uint32())
		}
		return k
	},
	// Runs of FF and of zeros.
	func(r *rand.Rand, n int) []byte {
		k := make([]byte, 1+r.IntN(12))
		fill := byte(r.IntN(2)) * 0xFF
		for i := range k {
			k[i] = fill
		}
		k[len(k)-1] = byte(r.IntN(256))
		return k
	},
}

func value(r *rand.Rand, seq uint64) []byte {
	v := fmt.Appendf(nil, "v%d", seq)
	switch r.IntN(20) {
	case 0:
		return nil
	case 1:
		return append(v, make([]byte, r.IntN(6000))...)
	case 2, 3, 4, 5:
		return append(v, make([]byte, r.IntN(200))...)
	}
	return v
}

// SeekKey returns a key worth seeking: one of the entries' or one beside it.
func SeekKey(r *rand.Rand, entries []iterator.Entry) []byte {
	switch r.IntN(12) {
	case 0:
		return []byte{}
	case 1:
		return []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	case 2:
		return []byte{byte(r.Uint32()), byte(r.Uint32())}
	}
	if len(entries) == 0 {
		return []byte("k")
	}
	key := append([]byte(nil), entries[r.IntN(len(entries))].Key...)
	switch r.IntN(6) {
	case 0:
		return append(key, 0)
	case 1:
		return append(key, 0xFF)
	case 2:
		return key[:len(key)-1]
	case 3:
		key[len(key)-1]--
	}
	return key
}
