package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStats(t *testing.T) {
	dir := newStore(t, "a", "1", "b", "2")
	r := cli(t, "stats", dir)
	if r.code != 0 || r.err != "" {
		t.Fatalf("code %d: %s", r.code, r.err)
	}
	for _, part := range []string{resolved(t, dir), "sequence", "on disk", "level", "none was needed"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("%q is not in\n%s", part, r.out)
		}
	}
}

// Beside a writer nothing is recovered, and nothing is said of the store having been closed.
func TestStatsBesideAWriter(t *testing.T) {
	dir := newStore(t, "a", "1")
	startHolder(t, dir)
	if !readBesideWriters(t, dir) {
		t.Skip("NOT TESTED: readers and writers exclude each other here")
	}
	if r := cli(t, "stats", dir); r.code != 0 || strings.Contains(r.out, "was closed") || !strings.Contains(r.out, "none was needed") {
		t.Errorf("%+v", r)
	}
	if d := parse[statsDocument](t, cli(t, "stats", "--json", dir).out); d.Recovery != (recoveryDocument{}) {
		t.Errorf("%+v", d.Recovery)
	}
}

func TestStatsJSON(t *testing.T) {
	dir := newStore(t, "a", "1", "b", "22")
	d := parse[statsDocument](t, cli(t, "stats", "--json", dir).out)
	if d.Store != resolved(t, dir) || d.Seq != 2 || d.Entries != 2 || d.Tables != 1 || d.RawBytes < 5 || d.LogBytes != 0 ||
		d.MemoryLimit <= 0 || d.Recovery != (recoveryDocument{}) {
		t.Errorf("%+v", d)
	}
	size := int64(0)
	for name, b := range contents(t, dir) {
		if strings.HasSuffix(name, ".sst") {
			size += int64(len(b))
		}
	}
	levels := int64(0)
	for i, l := range d.Levels {
		levels += l.Bytes
		if l.Level != i {
			t.Errorf("level %d is %+v", i, l)
		}
	}
	if d.DiskBytes != size || levels != size {
		t.Errorf("%d bytes on disk, %d in levels, files have %d", d.DiskBytes, levels, size)
	}
}

// The field names are a promise.
func TestStatsFields(t *testing.T) {
	fields := parse[map[string]json.RawMessage](t, cli(t, "stats", "--json", newStore(t)).out)
	for _, name := range strings.Fields(`store seq disk_bytes log_bytes raw_bytes entries tables runs space_amplification
		compaction_debt_bytes memory_used_bytes memory_limit_bytes levels recovery`) {
		if _, ok := fields[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	if string(fields["levels"])[0] != '[' {
		t.Errorf("levels is %s", fields["levels"])
	}
}
