package lifetest

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// request is a command to a child. Which fields count depends on Do.
type request struct {
	Do       string
	Dir      string
	Memory   int64
	Seed     uint64
	IDs      uint32
	N        int
	Snap     int // snapshot to read; 0: a new one
	Backward bool
	Seconds  float64
	Order    string // of keys: "sorted" or "random"
	End      string // of a transaction: "commit", "rollback" or "hang"
}

// answer is a child's reply.
type answer struct {
	Err      string
	Usage    usage
	Stats    stats
	Seconds  float64
	Slowest  float64 // seconds of the slowest commit
	N        int64
	Disk     int64 // bytes of a copy once it has settled, still open
	MostRuns int   // tables in level 0, at most
}

// stats is the part of the store's statistics that the tests judge.
type stats struct {
	Debt, Disk, Raw              int64
	MemoryUsed, Memtables, Pages int64
	Indexes, Flushed, Compacted  int64
	Committed                    int64
	Tables, Level0, Runs         int
	Stalls                       float64 // seconds
	BackgroundError              string
}

func statsOf(db *cairn.DB) stats {
	s := db.Stats()
	r := stats{
		Debt: s.CompactionDebt, Disk: s.DiskBytes, Raw: s.RawBytes, MemoryUsed: s.MemoryUsed, Memtables: s.Memtables,
		Pages: s.Pages, Indexes: s.PointIndexes, Flushed: s.FlushedBytes, Compacted: s.CompactedBytes,
		Committed: s.CommittedBytes, Tables: s.Tables, Runs: s.Runs, Stalls: s.Stalls.Seconds(),
	}
	if len(s.Levels) > 0 {
		r.Level0 = s.Levels[0].Tables
	}
	if s.BackgroundError != nil {
		r.BackgroundError = s.BackgroundError.Error()
	}
	return r
}

const childVariable = "CAIRN_LIFE_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "serve":
		serve()
	case "kill":
		killWriter()
	case "read":
		readUntilKilled()
	case "burst":
		burstWriter()
	case "long":
		longWriter()
	case "disk":
		diskWriter()
	default:
		os.Exit(m.Run())
	}
}

// server is the child's side.
type server struct {
	in    *json.Decoder
	out   *bufio.Writer
	db    *cairn.DB
	opts  cairn.Options
	dir   string
	ops   *ops
	w     *writer
	snaps map[int]*cairn.Tx
}

func serve() {
	s := &server{in: json.NewDecoder(os.Stdin), out: bufio.NewWriterSize(os.Stdout, 64<<10), snaps: map[int]*cairn.Tx{}}
	for {
		var r request
		if err := s.in.Decode(&r); err != nil {
			return // the parent is gone
		}
		start := time.Now()
		var a answer
		if err := s.handle(r, &a); err != nil {
			a.Err = err.Error()
		}
		a.Seconds = time.Since(start).Seconds()
		if s.db == nil {
			awaitFreed()
		}
		a.Usage = measure()
		if s.db != nil {
			a.Stats = statsOf(s.db)
		}
		line, _ := json.Marshal(a)
		s.out.Write(append(line, '\n'))
		s.out.Flush()
	}
}

func (s *server) handle(r request, a *answer) error {
	switch r.Do {
	case "open":
		return s.open(r)
	case "close":
		return s.close()
	case "run":
		return s.run(r.N, a)
	case "snap":
		tx, err := s.db.Begin(false)
		s.snaps[r.Snap] = tx
		return err
	case "drop":
		tx := s.snaps[r.Snap]
		delete(s.snaps, r.Snap)
		return tx.Rollback()
	case "scan":
		return s.scan(r)
	case "get":
		return s.get(r)
	case "idle":
		return s.idle(time.Duration(r.Seconds * float64(time.Second)))
	case "copy":
		return s.copy(r.Dir, a)
	case "large":
		return s.large(r)
	case "sustain":
		return s.sustain(r, a)
	case "base":
		return nil
	}
	return fmt.Errorf("unknown command %q", r.Do)
}

func (s *server) open(r request) (err error) {
	s.dir = r.Dir
	s.opts = cairn.Options{Memory: r.Memory, Durability: cairn.Relaxed}
	if s.db, err = cairn.Open(r.Dir, &s.opts); err != nil {
		return err
	}
	s.w = newWriter(s.db)
	if s.ops == nil {
		s.ops = newOps(r.Seed, r.IDs)
	}
	return nil
}

func (s *server) close() error {
	db := s.db
	s.db, s.w = nil, nil
	err := db.Close()
	runtime.GC()
	return err
}

// awaitFreed waits until the space of the files that Close has removed is free, which it
// leaves to goroutines that end with that (vfs.RemoveSoon): a leak stays, and is seen.
func awaitFreed() {
	for range 1000 {
		if runtime.NumGoroutine() == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// run applies commits until n operations are done.
func (s *server) run(n int, a *answer) error {
	for done := 0; done < n; {
		c := s.ops.next()
		start := time.Now()
		if err := s.w.apply(c); err != nil {
			return err
		}
		a.Slowest = max(a.Slowest, time.Since(start).Seconds())
		done += len(c.ops)
	}
	return nil
}

// scan sends all pairs, each with its lengths before it, and then an empty key.
func (s *server) scan(r request) error {
	tx := s.snaps[r.Snap]
	var err error
	if tx == nil {
		if tx, err = s.db.Begin(false); err != nil {
			return err
		}
		defer tx.Rollback()
	}
	rows := tx.Scan(cairn.Range{})
	if r.Backward {
		rows = tx.ScanBackward(cairn.Range{})
	}
	for k, v := range rows {
		s.send(k)
		s.send(v)
	}
	s.send(nil)
	return tx.Err()
}

func (s *server) send(b []byte) {
	var n [binary.MaxVarintLen64]byte
	s.out.Write(n[:binary.PutUvarint(n[:], uint64(len(b)))])
	s.out.Write(b)
}

// get sends the values of N random ids, an empty one for none.
func (s *server) get(r request) error {
	ids := newOps(r.Seed, r.IDs)
	var key, value []byte
	var first error
	for range r.N {
		var err error
		key = appendKey(key[:0], ids.r.Uint32N(r.IDs))
		value, err = s.db.GetTo(key, value[:0])
		if errors.Is(err, cairn.ErrNotFound) {
			value, err = value[:0], nil
		}
		if err != nil && first == nil {
			first = err
		}
		s.send(value)
	}
	return first
}

// idle waits until the store owes nothing and stays so for a moment.
func (s *server) idle(limit time.Duration) error {
	for start, calm := time.Now(), 0; calm < 10; {
		if s.db.Stats().CompactionDebt == 0 {
			calm++
		} else {
			calm = 0
		}
		if time.Since(start) > limit {
			return fmt.Errorf("still in debt after %v: %+v", limit, statsOf(s.db))
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// copy loads a new store with what this one holds and lets it settle.
func (s *server) copy(dir string, a *answer) error {
	to, err := cairn.Open(dir, &s.opts)
	if err != nil {
		return err
	}
	b := cairn.NewBatch()
	err = s.db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Range{}) {
			if b.Put(k, v); b.Len() == 1000 {
				if err := to.Write(b); err != nil {
					return err
				}
				b.Reset()
			}
			a.N++
		}
		return to.Write(b)
	})
	if err == nil {
		err = (&server{db: to}).idle(5 * time.Minute)
	}
	a.Disk, _ = diskBytes(dir)
	return errors.Join(err, to.Close())
}

// child is the parent's side.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T) *child {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, in, bufio.NewReaderSize(out, 64<<10)}
	t.Cleanup(c.stop)
	return c
}

// stop ends the child and waits for it.
func (c *child) stop() {
	c.in.Close()
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func (c *child) ask(r request) {
	c.t.Helper()
	line, _ := json.Marshal(r)
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		c.t.Fatalf("child: %v", err)
	}
}

// answer reads the end of a reply and fails the test if it is an error.
func (c *child) answer() answer {
	c.t.Helper()
	var a answer
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil || a.Err != "" {
		c.t.Fatalf("child: %v %s", err, a.Err)
	}
	return a
}

func (c *child) do(r request) answer {
	c.t.Helper()
	c.ask(r)
	return c.answer()
}

// blob reads what send sent, into buf.
func (c *child) blob(buf []byte) []byte {
	n, err := binary.ReadUvarint(c.out)
	if err == nil {
		buf = append(buf[:0], make([]byte, n)...)
		_, err = io.ReadFull(c.out, buf)
	}
	if err != nil {
		c.t.Fatalf("child: %v", err)
	}
	return buf
}
