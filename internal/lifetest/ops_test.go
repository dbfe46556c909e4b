package lifetest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/cairndb/cairn"
)

// Keys are made of ids, in the same order, with random gaps; values of an id and
// a version, the number of the operation that wrote it.
const (
	keyBytes   = 16
	valueBytes = 84
	keyGap     = 7919
)

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// appendKey appends the key of an id: 16 bytes.
func appendKey(dst []byte, id uint32) []byte {
	n := uint64(id)*keyGap + mix(uint64(id))%keyGap
	var b [keyBytes / 2]byte
	binary.BigEndian.PutUint64(b[:], n)
	return hex.AppendEncode(dst, b[:])
}

// appendValue appends the value of a version of an id: 84 bytes, most of them
// syllables that compress as text does.
func appendValue(dst []byte, id, version uint32) []byte {
	x := uint64(id)<<32 | uint64(version)
	dst = binary.BigEndian.AppendUint64(dst, x)
	for i := range (valueBytes - 8) / 4 {
		if i%8 == 0 {
			x = mix(x)
		}
		c := byte(x >> (i % 8 * 8))
		dst = append(dst, "bdfgklmnprstvwxz"[c&15], "aeiou"[c>>4%5], "ntrs"[c>>6], ' ')
	}
	return dst
}

type opKind uint8

const (
	opPut opKind = iota
	opDelete
	opDeleteRange
)

// op is one write. id is its key; a range is the ids in [id, end).
type op struct {
	kind    opKind
	id, end uint32
	version uint32
}

// commit is a group of operations that the store makes one commit.
type commit struct {
	ops     []op
	durable bool
	tx      bool // in a transaction rather than a batch or a single call
}

// ops makes operations from a seed. The same seed makes the same ones.
type ops struct {
	r       *rand.Rand
	ids     uint32
	version uint32
	buf     []op
}

func newOps(seed uint64, ids uint32) *ops {
	return &ops{r: rand.New(rand.NewPCG(seed, 7)), ids: ids}
}

// next returns the next commit; it is valid until the one after.
func (o *ops) next() commit {
	n := 1
	if o.r.IntN(8) == 0 {
		n = 1 + o.r.IntN(300)
	}
	c := commit{durable: o.r.IntN(5000) == 0, tx: o.r.IntN(50) == 0}
	o.buf = o.buf[:0]
	for range n {
		o.buf = append(o.buf, o.op())
	}
	c.ops = o.buf
	return c
}

func (o *ops) op() op {
	o.version++
	w := op{id: o.r.Uint32N(o.ids), version: o.version}
	switch p := o.r.IntN(20000); {
	case p == 0:
		w.kind = opDeleteRange
		w.end = min(o.ids, w.id+1+o.r.Uint32N(o.ids/500+1))
	case p < 2000:
		w.kind = opDelete
	}
	return w
}

// versions is the model: of each id the version of its value, 0 if it has none.
type versions []uint32

func (v versions) apply(w op) {
	switch w.kind {
	case opPut:
		v[w.id] = w.version
	case opDelete:
		v[w.id] = 0
	case opDeleteRange:
		clear(v[w.id:w.end])
	}
}

func (v versions) live() (n int) {
	for _, version := range v {
		if version != 0 {
			n++
		}
	}
	return n
}

// writer applies commits to a store.
type writer struct {
	db         *cairn.DB
	b          *cairn.Batch
	key, value []byte
}

func newWriter(db *cairn.DB) *writer { return &writer{db: db, b: cairn.NewBatch()} }

// surface is what a batch and a transaction have in common.
type surface struct {
	put         func(key, value []byte) error
	del         func(key []byte) error
	deleteRange func(r cairn.Range) error
}

func (w *writer) apply(c commit) error {
	if c.tx || c.durable {
		return w.db.Update(func(tx *cairn.Tx) error {
			if c.durable {
				tx.SetDurability(cairn.Durable)
			}
			return w.each(c.ops, surface{tx.Put, tx.Delete, tx.DeleteRange})
		})
	}
	if len(c.ops) == 1 && c.ops[0].kind != opDeleteRange {
		return w.each(c.ops, surface{put: w.db.Put, del: w.db.Delete})
	}
	w.b.Reset()
	err := w.each(c.ops, surface{
		func(k, v []byte) error { w.b.Put(k, v); return nil },
		func(k []byte) error { w.b.Delete(k); return nil },
		func(r cairn.Range) error { w.b.DeleteRange(r); return nil },
	})
	if err != nil {
		return err
	}
	return w.db.Write(w.b)
}

func (w *writer) each(ops []op, s surface) error {
	for _, o := range ops {
		var err error
		w.key = appendKey(w.key[:0], o.id)
		switch o.kind {
		case opPut:
			w.value = appendValue(w.value[:0], o.id, o.version)
			err = s.put(w.key, w.value)
		case opDelete:
			err = s.del(w.key)
		case opDeleteRange:
			err = s.deleteRange(cairn.Range{Low: bytes.Clone(w.key), High: appendKey(nil, o.end)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
