package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// publicFile writes records in the style of public data sets: nested, of several
// scripts, of 20 B to 300 KB, with CRLF and blank lines at the end.
func publicFile(t *testing.T, n int) string {
	t.Helper()
	var text bytes.Buffer
	for i := range n {
		record := map[string]any{"id": fmt.Sprintf("ключ/%04d", (i*7)%n)}
		if i%5 > 0 {
			size := 1 << (i % 12)
			if i%40 == 1 {
				size = 50_000 // of six bytes each
			}
			record["body"] = strings.Repeat("数据", size)
			record["user"] = map[string]any{"name": "🦉 \"owl\"", "tags": []any{1, nil, "a\nb", map[string]any{"id": "not the key"}}}
		}
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, "\r\n"...))
	}
	text.WriteString("\r\n\n \n")
	path := filepath.Join(t.TempDir(), "public.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Records like those of public data sets go through the whole program, and every
// value that comes back is compared: a cell would be void otherwise.
func TestPublicDataThroughTheProgram(t *testing.T) {
	path, engines := publicFile(t, 120), "cairn,bbolt,pebble,lmdb"
	for _, key := range []string{"", "id"} {
		args := []string{"run", "-data", path, "-suite", "w0,w1,w4,load,ycsb,durable", "-engines", engines, "-n", "120", "-rounds", "1", "-sync", "off", "-settle=false", "-dir", t.TempDir(), "-format", "json"}
		if key != "" {
			args = append(args, "-data-key", key)
		}
		out, errs, err := call(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		run, err := result.Decode(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if d := run.Data; d.Records != 120 || d.KeyField != key || d.Skipped != 0 || d.PoolBytes < 900_000 {
			t.Errorf("key %q: %+v", key, d)
		}
		checkCells(t, run, strings.Split(engines, ","))
	}
}

func checkCells(t *testing.T, run *result.Run, engines []string) {
	t.Helper()
	if len(run.Cells) != len(run.Workloads)*len(engines) || len(run.Workloads) < 5 {
		t.Errorf("%d cells of %d workloads", len(run.Cells), len(run.Workloads))
	}
	for _, c := range run.Cells {
		d, err := engine.Find(c.Engine)
		if err != nil {
			t.Fatal(err)
		}
		want := result.OK
		if d.Info.Absent != "" {
			want = result.Absent
		}
		if c.Status != want || !strings.HasSuffix(c.Workload, "/data") {
			t.Errorf("%s %s: %s %s", c.Workload, c.Engine, c.Status, c.Reason)
		}
	}
}
