package engine

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
)

func TestFloorKeepsEveryByteOnce(t *testing.T) {
	for _, name := range []string{"floor", "floor-prealloc"} {
		for _, durable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/sync=%v", name, durable), func(t *testing.T) {
				d, err := Find(name)
				check(t, err)
				dir := t.TempDir()
				s, err := d.Open(dir, Options{Sync: durable})
				check(t, err)
				var all sync.WaitGroup
				for g := range 8 {
					all.Go(func() {
						for i := range 50 {
							check(t, s.Put(fmt.Appendf(nil, "<%02d%03d", g, i), []byte("value>")))
						}
					})
				}
				all.Wait()
				_, err = s.(Batcher).PutBatch(func(yield func(k, v []byte) bool) { yield([]byte("<batch"), bytes.Repeat([]byte("x"), floorAhead)) })
				check(t, err)
				check(t, s.Close())
				records, err := FloorRecords(dir)
				check(t, err)
				defer records.Close()
				text, err := io.ReadAll(records)
				check(t, err)
				for g := range 8 {
					for i := range 50 {
						if n := bytes.Count(text, fmt.Appendf(nil, "<%02d%03dvalue>", g, i)); n != 1 {
							t.Fatalf("record %d of goroutine %d is there %d times", i, g, n)
						}
					}
				}
				if want := 400*12 + 6 + floorAhead; len(text) != want {
					t.Errorf("%d bytes, want %d", len(text), want)
				}
			})
		}
	}
}
