package lifetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
)

// Each of four goroutines numbers its commits. Commit i writes all keys of group
// i%killGroups of its goroutine and, in the same commit, the key that says which
// was its last. So the last number alone tells what every key must hold.
const (
	killWriters = 4
	killGroups  = 40
	killKeys    = 6 // of a group; of every largeEvery-th commit, largeKeys
	largeEvery  = 150
	largeKeys   = 3000
	killMemory  = 4 * mb
)

func lastKey(w int) []byte { return fmt.Appendf(nil, "last/%d", w) }

func groupKey(w, group, j int) []byte { return fmt.Appendf(nil, "group/%d/%02d/%05d", w, group, j) }

func groupRange(w, group int) cairn.Range {
	return cairn.Prefix(fmt.Appendf(nil, "group/%d/%02d/", w, group))
}

// groupValue is what commit i writes to key j: 40 to 1,000 bytes.
func groupValue(w int, i uint64, j int) []byte {
	x := mix(i<<16 | uint64(w)<<8 | uint64(j))
	return append(binary.BigEndian.AppendUint64(nil, i), bytes.Repeat(binary.BigEndian.AppendUint64(nil, x), int(4+x%121))...)
}

// groupSize returns how many keys commit i leaves in its group. Some commits
// delete their group, key by key or as a range.
func groupSize(i uint64) int {
	switch {
	case i%largeEvery == 0:
		return largeKeys
	case i%7 == 3, i%11 == 5:
		return 0
	}
	return killKeys
}

// killCommit fills a transaction with commit i.
func killCommit(tx *cairn.Tx, w int, i uint64) error {
	group := int(i % killGroups)
	if i%3 == 0 {
		tx.SetDurability(cairn.Durable)
	}
	if i%7 == 3 {
		for k := range tx.Keys(groupRange(w, group)) {
			if err := tx.Delete(bytes.Clone(k)); err != nil {
				return err
			}
		}
	} else if err := tx.DeleteRange(groupRange(w, group)); err != nil {
		return err
	}
	for j := range groupSize(i) {
		if err := tx.Put(groupKey(w, group, j), groupValue(w, i, j)); err != nil {
			return err
		}
	}
	return tx.Put(lastKey(w), binary.BigEndian.AppendUint64(nil, i))
}

// verifyKilled returns the last commit of each writer, having checked that the
// store holds just what these and all before them left.
func verifyKilled(db *cairn.DB) (last [killWriters]uint64, err error) {
	if rep, err := db.Verify(context.Background()); err != nil {
		return last, fmt.Errorf("Verify: %+v: %w", rep, err)
	}
	return verifyCommits(db)
}

// verifyCommits is verifyKilled of what is there, without a look at every byte of the tables.
func verifyCommits(db *cairn.DB) (last [killWriters]uint64, err error) {
	err = db.View(func(tx *cairn.Tx) error {
		for w := range killWriters {
			v, err := tx.Get(lastKey(w))
			if err != nil && !errors.Is(err, cairn.ErrNotFound) {
				return err
			}
			if err == nil {
				last[w] = binary.BigEndian.Uint64(v)
			}
			for group := range killGroups {
				if err := verifyGroup(tx, w, group, last[w]); err != nil {
					return fmt.Errorf("writer %d, last commit %d: %w", w, last[w], err)
				}
			}
		}
		return nil
	})
	return last, err
}

func verifyGroup(tx *cairn.Tx, w, group int, last uint64) error {
	i := uint64(0) // the last commit to the group
	if d := (last%killGroups + killGroups - uint64(group)) % killGroups; d < last {
		i = last - d
	}
	n := 0
	if i > 0 {
		n = groupSize(i)
	}
	j := 0
	for k, v := range tx.Scan(groupRange(w, group)) {
		if j >= n || !bytes.Equal(k, groupKey(w, group, j)) || !bytes.Equal(v, groupValue(w, i, j)) {
			return fmt.Errorf("group %d: row %d is %q with %x, want %d rows of commit %d", group, j, k, v[:min(8, len(v))], n, i)
		}
		j++
	}
	if j != n || tx.Err() != nil {
		return fmt.Errorf("group %d has %d rows, want %d of commit %d: %v", group, j, n, i, tx.Err())
	}
	return nil
}

// killWriter is the child: it opens the store, checks it, says so, and writes
// until it is killed. Lines: "s w i" for the state found, "r" once it writes,
// "b w i" before a commit and "a w i" when it is acknowledged.
func killWriter() {
	opts := &cairn.Options{Memory: killMemory}
	if os.Args[2] == "relaxed" {
		opts.Durability = cairn.Relaxed
	}
	db, err := cairn.Open(os.Args[1], opts)
	if err != nil {
		fmt.Println("e open:", err)
		return
	}
	last, err := verifyKilled(db)
	if err != nil {
		fmt.Println("e", err)
		return
	}
	if err := verifyFiles(db, os.Args[1]); err != nil {
		fmt.Println("e", err)
		return
	}
	for w, i := range last {
		fmt.Println("s", w, i)
	}
	fmt.Println("r")
	var all sync.WaitGroup
	for w := range killWriters {
		all.Go(func() { killWrite(db, w, last[w]) })
	}
	all.Wait()
}

// verifyFiles checks that no table file is there without a use, as soon as
// background work rests long enough for a count.
func verifyFiles(db *cairn.DB, dir string) (err error) {
	for range 200 {
		before := db.Stats()
		n, empty := tables(dir)
		if after := db.Stats(); n-empty == after.Tables && empty <= 1 && before.Compactions == after.Compactions {
			return nil
		}
		err = fmt.Errorf("%d table files for %d tables", n, before.Tables)
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func killWrite(db *cairn.DB, w int, i uint64) {
	line := make([]byte, 0, 64)
	say := func(what string) {
		line = strconv.AppendUint(append(strconv.AppendInt(append(line[:0], what...), int64(w), 10), ' '), i, 10)
		os.Stdout.Write(append(line, '\n')) // one write: a line is whole or absent
	}
	for i++; ; i++ {
		say("b ")
		if err := db.Update(func(tx *cairn.Tx) error { return killCommit(tx, w, i) }); err != nil {
			fmt.Println("e commit:", err)
			return
		}
		say("a ")
	}
}

// heard is what the parent knows of one child.
type heard struct {
	found, begun, acked [killWriters]uint64
	states              int
	err                 string
}

func (h *heard) line(s string) {
	var w int
	var i uint64
	switch s[0] {
	case 'e':
		h.err += s + "\n"
	case 's', 'b', 'a':
		fmt.Sscanf(s[2:], "%d %d", &w, &i)
		switch s[0] {
		case 's':
			h.found[w] = i
			h.states++
		case 'b':
			h.begun[w] = i
		case 'a':
			h.acked[w] = i
		}
	}
}

// lifespan is how long a child lives.
type lifespan int

const (
	early lifespan = iota // some milliseconds from its start: it may not even have opened the store
	soon                  // up to a quarter of a second of writing
	late                  // some milliseconds after it made a log file of one that was used before
)

// killChild runs a child of a kind and hands heard an empty line and then each that it writes, until
// it has ended: by itself, or because it was killed, within a minute or after what heard gives to in.
func killChild(t *testing.T, kind string, args []string, heard func(line string, in func(time.Duration))) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childVariable+"="+kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) // a child that hangs
	in := func(d time.Duration) { timer.Reset(d) }
	heard("", in)
	lines := bufio.NewReader(out)
	for {
		s, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		heard(s, in)
	}
	cmd.Wait()
}

// killRound runs a child, whose commits are relaxed or durable, and kills it when its life is over.
func killRound(t *testing.T, dir, durability string, r *rand.Rand, lives lifespan) (h heard) {
	rest := time.Duration(1+r.IntN(30)) * time.Millisecond
	killChild(t, "kill", []string{dir, durability}, func(s string, in func(time.Duration)) {
		if s != "" {
			h.line(s)
		}
		switch {
		case lives == early && s == "":
			in(rest)
		case lives == soon && s == "r\n":
			in(time.Duration(1+r.IntN(250)) * time.Millisecond)
		case lives == late && s != "" && s[0] == 'a' && hasReusedLog(t, dir):
			in(rest)
			lives = soon // which is as good as over
		}
	})
	return h
}

// TestKill: whatever the instant at which kill -9 ends a writing process, every
// acknowledged commit is there afterwards, and every commit as a whole or not at all.
func TestKill(t *testing.T) {
	rounds := of(10, 300)
	r := rand.New(rand.NewPCG(testSeed(t), 11))
	dir := filepath.Join(t.TempDir(), "store")
	var acked, begun [killWriters]uint64
	inFlight, blind, reused, commits := 0, 0, 0, uint64(0)
	for round := range rounds {
		lives, durability := soon, "relaxed"
		if round%2 > 0 {
			durability = "durable"
		}
		if round%4 == 3 {
			lives = late // durable: a relaxed log file is not used again
		} else if r.IntN(9) == 0 {
			lives = early
		}
		h := killRound(t, dir, durability, r, lives)
		if hasReusedLog(t, dir) {
			reused++
		}
		if h.err != "" {
			t.Fatalf("round %d: %s", round, h.err)
		}
		if h.states < killWriters {
			blind++
			continue // died before it had looked
		}
		flight := false
		for w := range killWriters {
			if h.found[w] < acked[w] || h.found[w] > max(begun[w], acked[w]) {
				t.Fatalf("round %d: writer %d: found commit %d; acknowledged %d, begun %d", round, w, h.found[w], acked[w], begun[w])
			}
			acked[w] = max(h.found[w], h.acked[w])
			begun[w] = max(acked[w], h.begun[w])
			commits += acked[w] - h.found[w]
			flight = flight || begun[w] > acked[w]
		}
		if flight {
			inFlight++
		}
	}
	judgeKilled(t, dir, acked, begun)
	t.Logf("%d rounds: %d commits acknowledged, %d rounds died with commits in flight, %d before they began, %d left a log file that was used before",
		rounds, commits, inFlight, blind, reused)
	if runtime.GOOS == "linux" && reused < rounds/10 {
		t.Errorf("only %d of %d rounds left a log file that was used before", reused, rounds)
	}
	if inFlight < rounds/3 {
		t.Errorf("only %d of %d rounds died with commits in flight", inFlight, rounds)
	}
}

// hasReusedLog reports whether a log file in dir, which may be in use, was used before:
// docs/format/log.md.
func hasReusedLog(t *testing.T, dir string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return false // renamed or removed since
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var buf [base.FileHeaderBytes]byte
		n, _ := io.ReadFull(f, buf[:])
		h, err := base.DecodeFileHeader(buf[:n], base.FileLog, name)
		return err == nil && h.Reused
	})
}

// judgeKilled looks at the store a last time, in this process, and closes it.
func judgeKilled(t *testing.T, dir string, acked, begun [killWriters]uint64) {
	t.Helper()
	db, err := cairn.Open(dir, &cairn.Options{Memory: killMemory})
	if err != nil {
		t.Fatal(err)
	}
	last, err := verifyKilled(db)
	if err != nil {
		t.Fatal(err)
	}
	for w := range last {
		if last[w] < acked[w] || last[w] > begun[w] {
			t.Errorf("writer %d: found commit %d; acknowledged %d, begun %d", w, last[w], acked[w], begun[w])
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = cairn.Open(dir, &cairn.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n, _ := tables(dir); n != db.Stats().Tables {
		t.Errorf("%d table files for %d tables after closing", n, db.Stats().Tables)
	}
}
