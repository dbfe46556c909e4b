package table

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/invariants"
	"github.com/cairndb/cairn/internal/layout"
)

const footerMagic = "cairnEND"

func resealHeader(b []byte) {
	sum := crc32.Checksum(b[:12], base.Castagnoli)
	binary.LittleEndian.PutUint32(b[12:], crc32.Update(sum, base.Castagnoli, b[16:base.FileHeaderBytes]))
}

// repair makes the checksums of a mutated table right as far as its parts can
// be found, so that what lies behind the checksums is reached. It returns a meta
// that agrees with the file.
func repair(b []byte) (meta base.TableMeta) {
	meta = base.TableMeta{Num: 7, File: fileID, Size: int64(len(b))}
	if len(b) < layout.MinFileBytes {
		return meta
	}
	copy(b, base.AppendFileHeader(nil, base.FileHeader{Type: base.FileTable, Version: base.FormatVersion, File: fileID, Store: storeID, Num: 7}))
	id, end := block.NewIdentity(fileID, ""), int64(len(b)-layout.FooterBytes)
	foot := b[end:]
	copy(foot[72:], footerMagic)
	binary.LittleEndian.PutUint32(foot[68:], id.Sum(end, append(foot[:68:68], footerMagic...)))
	f, err := layout.DecodeFooter(foot, id, end)
	if err != nil {
		return meta
	}
	resealPages(b, id, f.TombOff(), f.IndexOff(), func([]byte) {})
	resealPages(b, id, f.PropOff(), f.End(), func(raw []byte) {
		if props, err := layout.DecodeProperties(raw); err == nil {
			props.Num, props.File, props.Size = meta.Num, meta.File, meta.Size
			meta = props
		}
	})
	x := layout.NewIndex(int(f.Blocks))
	resealPages(b, id, f.IndexOff(), f.PropOff(), func(raw []byte) { x.AddPage(raw, f.TombOff()) })
	for _, e := range x.Blocks {
		resealPage(b[e.Off:][:e.KeyPage], id, e.Off)
		if !e.Jumbo() && e.ValueHeap > 0 {
			resealPage(b[e.ValueOff():][:e.ValuePage], id, e.ValueOff())
		}
	}
	return meta
}

func resealPages(b []byte, id block.Identity, off, end int64, raw func([]byte)) {
	for end-off >= block.OverheadBytes {
		size := int64(block.SizeFromHeader(b[off:]))
		if size > end-off {
			return
		}
		p := b[off : off+size]
		resealPage(p, id, off)
		if page, err := id.ParsePage(p, block.PageType(p[1]), off); err == nil {
			if r, err := page.Raw(nil); err == nil {
				raw(r)
			}
		}
		off += size
	}
}

func resealPage(p []byte, id block.Identity, off int64) {
	body := p[:len(p)-4]
	binary.LittleEndian.PutUint32(p[len(body):], id.Sum(off, body))
}

// use does with a table of any bytes what can be done with one. All it may
// meet is corruption.
func use(t *testing.T, m *room, b []byte, meta base.TableMeta) {
	check := func(err error) bool {
		if err != nil && !errors.Is(err, base.ErrCorrupt) {
			t.Fatal(err)
		}
		return err == nil
	}
	rd, err := Open(&memFile{b: b}, meta, storeID, "7.sst", m.cache, m.budget)
	if !check(err) {
		return
	}
	defer rd.Close()
	sound := check(second(rd.Verify(context.Background(), nil)))
	if x, err := rd.BuildIndex(context.Background()); check(err) {
		x.Free()
	}
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	for ok := it.Last(); ok; ok = it.Prev() {
	}
	check(it.Err())
	fresh := rd.NewIter(m.slot, IterOptions{NoCache: true})
	defer fresh.Close()
	n := uint64(0)
	for ok := fresh.First(); ok; ok = fresh.Next() {
		_, err := fresh.Value()
		check(err)
		_, ok, err := m.get(rd, string(fresh.Key()), everything)
		if check(err); sound && err == nil && !ok {
			t.Fatalf("row %q of a table that verifies is not found", fresh.Key())
		}
		n++
	}
	if check(fresh.Err()); sound && n != meta.Entries {
		t.Fatalf("%d rows of %d in a table that verifies", n, meta.Entries)
	}
	rd.Tombstones().Cover([]byte("k"), everything)
}

func fuzzSeeds(t testing.TB) (seeds [][]byte) {
	for _, codec := range codecs {
		f, _ := smallContent().write(t, WriterOptions{Codec: codec, BlockBytes: 512})
		seeds = append(seeds, f.b)
		for s := range uint64(4) {
			f, _ := randomContent(rand.New(rand.NewPCG(s, 3))).write(t, WriterOptions{Codec: codec, BlockBytes: 600})
			if len(f.b) < 20000 {
				seeds = append(seeds, f.b)
			}
		}
	}
	return seeds
}

func FuzzTable(f *testing.F) {
	for _, seed := range fuzzSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := newRoom(t, 1<<30)
		meta := repair(b)
		use(t, m, b, meta)
	})
}

// What the fuzzer does, a little of it, on every run: mutations behind repaired checksums.
func TestMutationsBehindRepairedChecksums(t *testing.T) {
	m := newRoom(t, 1<<30)
	seeds := fuzzSeeds(t)
	r := rand.New(rand.NewPCG(8, 8))
	opened := 0
	rounds := 3000
	if invariants.Enabled {
		rounds = 400
	}
	for range rounds {
		b := append([]byte(nil), seeds[r.IntN(len(seeds))]...)
		for range 1 + r.IntN(3) {
			b[base.FileHeaderBytes+r.IntN(len(b)-base.FileHeaderBytes)] = byte(r.Uint32() >> (r.IntN(3) * 8))
		}
		meta := repair(b)
		use(t, m, b, meta)
		if rd, err := Open(&memFile{b: b}, meta, storeID, "7.sst", m.cache, m.budget); err == nil {
			opened++
			rd.Close()
		}
	}
	if opened < rounds/4 {
		t.Fatalf("only %d of the mutated tables open: the checksums are not repaired", opened)
	}
}
