package crashtest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Moment is where in a history an image was taken.
type Moment struct {
	At       int  // length of the journal
	Complete bool // nothing was lost: the end of a process, not of the power
}

// Found is what a store held when it was opened.
type Found struct {
	Prefix  int       // successful commits that are there
	Extra   []*Commit // others that are there
	Pairs   []Pair
	Dropped int64
}

// lastSeq returns the sequence of the last commit that is there.
func (f *Found) lastSeq(h *History) uint64 {
	if f.Prefix == 0 {
		return 0
	}
	return h.sorted[f.Prefix-1].Seq
}

// Judge compares what a store holds with the history: O2 to O5.
func (h *History) Judge(s *Store, m Moment) (*Found, error) {
	pairs, err := s.Contents()
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	f := &Found{Pairs: pairs, Dropped: s.Dropped()}
	if err := h.identify(f, m); err != nil {
		return nil, err
	}
	if want := h.required(m); f.Prefix < want {
		return nil, fmt.Errorf("O2: %d commits are there, but %d were promised (first missing: %s)", f.Prefix, want, h.sorted[f.Prefix])
	}
	unsure := contested(f.Extra)
	if err := diff(without(h.state(f.Prefix, f.Extra), unsure), without(pairs, unsure)); err != nil {
		return nil, fmt.Errorf("O4: of the state after %d commits and %d others: %w", f.Prefix, len(f.Extra), err)
	}
	for key := range unsure {
		value, there := f.get(key)
		if !slices.ContainsFunc(f.Extra, func(c *Commit) bool { return c.leaves(key, value, there) }) {
			return nil, fmt.Errorf("O4: %q is %q (there: %v), which none of the %d commits left that wrote it last", key, value, there, len(f.Extra))
		}
	}
	return f, nil
}

// get returns what the store held.
func (f *Found) get(key string) (value string, there bool) {
	i, there := slices.BinarySearchFunc(f.Pairs, key, func(p Pair, key string) int { return strings.Compare(p.Key, key) })
	if !there {
		return "", false
	}
	return f.Pairs[i].Value, true
}

// contested returns the keys that several commits wrote whose order nobody knows:
// commits of unknown outcome that turned up.
func contested(extra []*Commit) map[string]bool {
	several := map[string]bool{}
	for _, c := range extra {
		for _, op := range c.Ops {
			if op.Kind != base.KindRangeDelete && slices.ContainsFunc(extra, func(d *Commit) bool { return d != c && d.writes(op.Key) }) {
				several[op.Key] = true
			}
		}
	}
	return several
}

// settleOrder gives commits of unknown outcome that are there their places behind the
// sequence last. Whose write of a contested key came last is not known, but what it left
// is: the last one is noted to have written that.
func settleOrder(extra []*Commit, last uint64, get func(key string) (value string, there bool)) {
	for i, c := range extra {
		c.Seq = last + 1 + uint64(i)
	}
	for _, key := range slices.Sorted(maps.Keys(contested(extra))) {
		op := Op{Kind: base.KindDelete, Key: key}
		if value, there := get(key); there {
			op = Op{base.KindPut, key, value}
		}
		c := extra[len(extra)-1]
		c.Ops = append(slices.Clip(c.Ops), op)
	}
}

// writes reports whether the commit changes key.
func (c *Commit) writes(key string) bool {
	return slices.ContainsFunc(c.Ops, func(op Op) bool { return op.touches(key) })
}

// leaves reports whether the commit writes key and leaves it so.
func (c *Commit) leaves(key, value string, there bool) bool {
	for _, op := range slices.Backward(c.Ops) {
		if op.touches(key) {
			return there == (op.Kind == base.KindPut) && (!there || op.Value == value)
		}
	}
	return false
}

func (op Op) touches(key string) bool {
	if op.Kind == base.KindRangeDelete {
		return op.Key <= key && key < op.Value
	}
	return op.Key == key
}

func without(pairs []Pair, keys map[string]bool) []Pair {
	if len(keys) == 0 {
		return pairs
	}
	return slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return keys[p.Key] })
}

func (c *Commit) String() string {
	return fmt.Sprintf("commit %d (seq %d, durable %v, begun %d, told %d, synced %d, err %v)", c.Tag, c.Seq, c.Durable, c.Begun, c.Told, c.Synced, c.Err)
}

// identify finds out which commits are there: O3 and O5.
func (h *History) identify(f *Found, m Moment) error {
	there := map[*Commit]bool{}
	for _, p := range f.Pairs {
		if strings.HasPrefix(p.Key, "tag/") {
			c := h.byTag[p.Key]
			if c == nil || c.Begun >= m.At {
				return fmt.Errorf("O3: %q is there, which was not committed yet", p.Key)
			}
			there[c] = true
		}
	}
	for f.Prefix < len(h.sorted) && there[h.sorted[f.Prefix]] {
		f.Prefix++
	}
	for _, c := range h.sorted[f.Prefix:] {
		if there[c] {
			return fmt.Errorf("O3: %s is there, %s before it is not", c, h.sorted[f.Prefix])
		}
	}
	for _, c := range h.failed {
		if !there[c] {
			continue
		}
		if !c.Unknown && c.Told <= m.At {
			return fmt.Errorf("O5: failed %s is there", c)
		}
		f.Extra = append(f.Extra, c)
	}
	return nil
}

// required returns how many commits must be there.
func (h *History) required(m Moment) int {
	for i := len(h.sorted); i > 0; i-- {
		if c := h.sorted[i-1]; c.Synced <= m.At || m.Complete && c.Told <= m.At {
			return i
		}
	}
	return 0
}

// diff says where two contents differ.
func diff(want, got []Pair) error {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Errorf("row %d is %s, want %s", i, got[i], want[i])
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	return nil
}

func (p Pair) String() string { return fmt.Sprintf("%.40q=%.20q", p.Key, p.Value) }

// mayBeOurs reports whether a file is one the store must remove. Where a crash has left
// garbage as the beginning of a file, it cannot be told from somebody else's, and stays.
func mayBeOurs(fsys *memfs.FS, name string) bool {
	b, _ := fsys.ReadFile(filepath.Join(Dir, name))
	t, _ := base.ParseFileName(name)
	return base.MayBeOurs(t, b)
}

// checkFiles reports files that a cleanly closed store has no use for: O7.
func checkFiles(fsys *memfs.FS) error {
	s, err := manifest.Recover(fsys, Dir, false)
	if err != nil {
		return err
	}
	if !s.Clean || len(s.Segments) > 0 {
		return fmt.Errorf("O7: after Close the manifest is not clean or names %d log segments", len(s.Segments))
	}
	names, err := fsys.List(Dir)
	if err != nil {
		return err
	}
	live := []string{base.FileName(base.FileCurrent, 0), base.FileName(base.FileLock, 0), base.FileName(base.FileManifest, s.Manifest)}
	for _, t := range s.Version.Tables() {
		live = append(live, base.FileName(base.FileTable, t.Num))
	}
	for _, name := range names {
		if !slices.Contains(live, name) && mayBeOurs(fsys, name) {
			return fmt.Errorf("O7: %s is left over; live are %v", name, live)
		}
	}
	return nil
}
