package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/layout"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/vfs"
)

// forged is a block of a table that no writer makes: its keys are in order, and need not lie where its fence says.
type forged struct {
	fence string
	kind  base.Kind
	seq   uint64
	keys  []string
}

// forge returns a table whose checksums are right. Its rows have no values.
func forge(num uint64, store base.ID, blocks ...forged) ([]byte, *base.TableMeta) {
	m := &base.TableMeta{Num: num, File: base.NewID(), MinSeq: base.MaxSeq}
	id := block.NewIdentity(m.File, "")
	out := base.AppendFileHeader(nil, base.FileHeader{Type: base.FileTable, Version: 1, File: m.File, Store: store, Num: num})
	var index layout.IndexWriter
	for _, from := range blocks {
		var keys block.KeyBuilder
		for _, k := range from.keys {
			key := append([]byte{0}, k...)
			keys.Add(key, from.seq, from.kind, 0)
			if m.Entries == 0 || bytes.Compare(key, m.Smallest) < 0 {
				m.Smallest = key
			}
			if bytes.Compare(key, m.Largest) > 0 {
				m.Largest = key
			}
			if m.Entries++; from.kind == base.KindDelete {
				m.Deletes++
			}
			m.RawBytes += int64(len(key))
		}
		m.MinSeq, m.MaxSeq = min(m.MinSeq, from.seq), max(m.MaxSeq, from.seq)
		at := len(out)
		out = id.AppendPage(out, block.PageKeys, int64(at), block.None, keys.Encode(nil))
		e := layout.Entry{Rows: len(from.keys), KeyPage: len(out) - at, KeyForm: keys.FormBytes()}
		if from.fence != "" {
			e.Fence = append([]byte{0}, from.fence...)
		}
		index.Add(&e)
	}
	f := layout.Footer{BlocksBytes: int64(len(out)) - base.FileHeaderBytes, Blocks: uint64(len(blocks)), Rows: m.Entries}
	at := len(out)
	for _, page := range index.Pages {
		out = id.AppendPage(out, block.PageIndex, int64(len(out)), block.None, page)
	}
	f.IndexBytes = int64(len(out) - at)
	at = len(out)
	out = id.AppendPage(out, block.PageProperties, int64(at), block.None, layout.AppendProperties(nil, m))
	f.PropBytes = int64(len(out) - at)
	out = layout.AppendFooter(out, f, id, int64(len(out)))
	m.Size = int64(len(out))
	return out, m
}

// forgedStore makes a closed store whose last level is a forged table, number 10, with one of level 0 above it, number 11.
func forgedStore(t *testing.T, level0 []string, blocks ...forged) (dir string) {
	t.Helper()
	dir = t.TempDir()
	store := base.NewID()
	e := &manifest.Edit{NextFileNum: 100, LogStart: 100}
	add := func(num uint64, level int, run uint64, blocks ...forged) {
		data, meta := forge(num, store, blocks...)
		check(t, os.WriteFile(base.FilePath(dir, base.FileTable, num), data, 0o600))
		e.Added = append(e.Added, manifest.Added{Level: level, Run: run, Table: meta})
		e.LastSeq = max(e.LastSeq, meta.MaxSeq)
	}
	add(10, manifest.Bottom, 0, blocks...)
	add(11, 0, 1, forged{kind: base.KindPut, seq: 100, keys: level0})
	check(t, manifest.CreateSealed(vfs.OS(), dir, store, 5, e))
	return dir
}

// isForged checks that an error says of the forged table that it is damaged.
func isForged(t *testing.T, what string, err error) {
	t.Helper()
	var c *cairn.CorruptionError
	if !errors.As(err, &c) || !errors.Is(err, cairn.ErrCorrupt) || filepath.Base(c.File) != "000010.sst" {
		t.Errorf("%s: %v is not that the table is damaged", what, err)
	}
}

// TestUnorderedBlocks: a table whose checksums are right and whose blocks are not in order is damaged to whoever comes to
// one that is not where it should be: walks end with an error, merges fail with it, and nobody else is harmed.
func TestUnorderedBlocks(t *testing.T) {
	var even, odd, deleted []string
	for i := range 3000 {
		even, odd = append(even, fmt.Sprintf("aaaaaaaa%06d", 2*i)), append(odd, fmt.Sprintf("aaaaaaaa%06d", 2*i+1))
	}
	for i := range 100 {
		deleted = append(deleted, fmt.Sprintf("a%03d", i))
	}
	for what, blocks := range map[string][]forged{
		// What is sorted for scans takes the first and the last key to say what all of them begin with.
		"a short key between long ones": {{"", base.KindPut, 1, odd}, {"aaaaaaaa1", base.KindPut, 1, []string{"b"}}, {"aaaaaaaa2", base.KindPut, 1, []string{"aaaaaaaa3"}}},
		// Who leaves out what is known to be deleted would come back to it again and again.
		"deletes behind the last key": {{"", base.KindPut, 5, []string{"z"}}, {"p", base.KindDelete, 5, deleted}, {"q", base.KindPut, 5, []string{"b"}}},
		"the last block first":        {{"", base.KindPut, 1, []string{"z"}}, {"zz", base.KindPut, 2, []string{"a"}}},
	} {
		for _, readOnly := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, read-only %v", what, readOnly), func(t *testing.T) {
				readUnordered(t, openAt(t, forgedStore(t, even, blocks...), &cairn.Options{ReadOnly: readOnly}), even)
			})
		}
	}
}

func readUnordered(t *testing.T, db *cairn.DB, level0 []string) {
	for range 3 { // behind the first one they may go other ways
		for how, scan := range map[string]func(tx *cairn.Tx) int{"forward": countScan, "backward": countScanBackward} {
			isForged(t, how, db.View(func(tx *cairn.Tx) error {
				if n := scan(tx); n > 3*len(level0) {
					t.Fatalf("%s: the scan goes on behind %d keys", how, n)
				}
				return nil
			}))
		}
	}
	_, err := db.Get([]byte(level0[len(level0)/2]))
	check(t, err)
	_, err = db.Verify(t.Context())
	isForged(t, "Verify", err)
	if err := db.Compact(t.Context(), cairn.Range{}); !errors.Is(err, cairn.ErrReadOnly) {
		isForged(t, "Compact", err)
	}
	if err := db.Close(); err != nil {
		isForged(t, "Close", err)
	}
}

// countScan counts the keys of a scan, as long as it may go on.
func countScan(tx *cairn.Tx) (n int) {
	for range tx.Scan(cairn.Range{}) {
		if n++; n > 1<<20 {
			break
		}
	}
	return n
}

func countScanBackward(tx *cairn.Tx) (n int) {
	for range tx.ScanBackward(cairn.Range{}) {
		if n++; n > 1<<20 {
			break
		}
	}
	return n
}
