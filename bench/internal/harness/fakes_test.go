package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// fakeTitle tells fakes from engines.
const fakeTitle = "a fake"

// Engines that misbehave, each in one way, to see that the harness notices.
func registerFakes() {
	registerLaxRocksDB()
	registerShortOnly()
	fake("good", func(*fakeStore) {})
	fake("loses", func(s *fakeStore) {
		s.onPut = func(n int, key, value []byte) bool { return n != 3 }
	})
	fake("stale", func(s *fakeStore) {
		s.onPut = func(n int, key, value []byte) bool { return s.values[string(key)] == nil || n%5 != 0 }
	})
	fake("undeletes", func(s *fakeStore) {
		s.onDelete = func(n int, _ []byte) bool { return n != 4 }
	})
	fake("fails", func(s *fakeStore) { s.failAt = 5 })
	fake("crashes", func(s *fakeStore) {
		s.onPut = func(n int, key, value []byte) bool {
			if n == 6 {
				panic("a fault of the engine")
			}
			return true
		}
	})
	fake("exits", func(s *fakeStore) {
		s.onPut = func(int, []byte, []byte) bool { os.Exit(0); return false }
	})
	fake("hangs", func(s *fakeStore) {
		s.onPut = func(int, []byte, []byte) bool { s.hang(); return false }
	})
	fake("glutton", func(s *fakeStore) {
		s.onPut = func(int, []byte, []byte) bool { s.ballast = append(s.ballast, filled(64<<20)); return true }
	})
	fake("leaves processes", func(s *fakeStore) {
		s.onPut = func(n int, _, _ []byte) bool {
			if n == 1 {
				startLoose(false)
				startLoose(true)
			}
			return true
		}
	})
	fake("multiplies", func(s *fakeStore) {
		s.onPut = func(int, []byte, []byte) bool { multiply(); s.hang(); return false }
	})
	fake("deaf", func(s *fakeStore) {
		s.onPut = func(int, []byte, []byte) bool { signal.Ignore(syscall.SIGTERM, os.Interrupt); s.hang(); return false }
	})
	fake("kills itself", func(s *fakeStore) {
		s.onPut = func(n int, _, _ []byte) bool {
			if n == 6 {
				self, _ := os.FindProcess(os.Getpid())
				self.Kill()
			}
			return true
		}
	})
	fake("writes on", func(s *fakeStore) { s.writesOn = true })
	liar := func(durable func(*fakeStore) error) func(*fakeStore) {
		return func(s *fakeStore) {
			if s.durable != nil {
				s.durable = func() error { return durable(s) }
			}
		}
	}
	fake("never syncs", liar(func(*fakeStore) error { return nil }))
	fake("syncs sometimes", liar(func(s *fakeStore) error {
		if s.puts%10 != 0 {
			return nil
		}
		return s.log.Sync()
	}))
	fake("syncs later", liar(func(s *fakeStore) error {
		go s.log.Sync()
		time.Sleep(200 * time.Microsecond) // long enough for the call to have begun
		return nil
	}))
	fake("syncs another file", liar(func(s *fakeStore) error {
		f, err := os.CreateTemp("", "another")
		if err == nil {
			err = errors.Join(f.Sync(), f.Close(), os.Remove(f.Name()))
		}
		return err
	}))
	fake("syncs puts only", func(s *fakeStore) { s.lazyDelete = true })
	fake("needs repair", func(s *fakeStore) { s.dirtyMark = true })
	fake("forgets at close", func(s *fakeStore) { s.forget = true })
	survivor := func(keepDeletes bool, longest int) func(*fakeStore) {
		return func(s *fakeStore) {
			s.onPut = func(_ int, key, value []byte) bool { return len(value) > longest || s.save(key, value) }
			s.onDelete = func(_ int, key []byte) bool {
				if keepDeletes {
					os.Remove(filepath.Join(s.dir, string(key)))
				}
				return true
			}
		}
	}
	fake("survives kills", survivor(true, 1<<20))
	fake("loses deletes at a kill", survivor(false, 1<<20))
	fake("loses middling values at a kill", survivor(true, 1000))
	fake("loses long values at a kill", survivor(true, 16<<10))
	fake("brings back", func(s *fakeStore) {
		s.onDelete = func(_ int, key []byte) bool { s.graves = append(s.graves, string(key)); return true }
	})
}

func fake(name string, how func(*fakeStore)) {
	engine.Register(engine.Driver{
		Info: engine.Info{Name: name, Title: fakeTitle, Cannot: map[engine.Ability]string{
			engine.CanOrder: "a fake", engine.CanBatch: "a fake has no batch", engine.CanView: "a fake",
			engine.CanKeys: "a fake walks no keys", engine.CanPairs: "a fake walks no pairs",
			engine.CanScan: "a fake scans nothing", engine.CanShare: "a fake has one map", engine.CanSettle: "a fake has nothing to settle",
		}},
		Settings: func(engine.Options) []engine.Setting { return nil },
		Open: func(dir string, o engine.Options) (engine.Store, error) {
			s := &fakeStore{dir: dir, values: map[string][]byte{}}
			if o.Sync {
				s.log, _ = os.Create(filepath.Join(dir, "log"))
				s.durable = func() error { return s.log.Sync() }
			}
			how(s)
			return s, s.load()
		},
	})
}

// fakeStore keeps a map and writes it to a directory of files when it is closed.
type fakeStore struct {
	dir     string
	values  map[string][]byte
	puts    int
	deletes int
	failAt  int
	forget  bool

	log        *os.File
	durable    func() error // nil: not asked for
	lazyDelete bool
	dirtyMark  bool // while open; with the mark left behind it does not open

	writesOn bool // after Close, into files it leaves open
	ballast  [][]byte
	graves   []string                            // deleted keys that come back at close
	onPut    func(n int, key, value []byte) bool // false: acknowledge and do nothing
	onDelete func(n int, key []byte) bool
}

func (s *fakeStore) load() error {
	if s.dirtyMark {
		mark, err := os.OpenFile(filepath.Join(s.dir, "dirty"), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return errors.New("the store was not closed: repair it")
		}
		mark.Close()
	}
	files, err := os.ReadDir(s.dir)
	for _, f := range files {
		if f.Name() == "log" || f.Name() == "dirty" || strings.HasPrefix(f.Name(), "litter") {
			continue
		}
		s.values[f.Name()], err = os.ReadFile(filepath.Join(s.dir, f.Name()))
	}
	return err
}

func (s *fakeStore) Put(key, value []byte) error {
	s.puts++
	if s.puts == s.failAt {
		return errors.New("the disk is on fire")
	}
	if s.onPut == nil || s.onPut(s.puts, key, value) {
		s.values[string(key)] = bytes.Clone(value)
	}
	return s.commit()
}

func (s *fakeStore) commit() error {
	if s.durable == nil {
		return nil
	}
	return s.durable()
}

func (s *fakeStore) Delete(key []byte) error {
	s.deletes++
	if s.onDelete == nil || s.onDelete(s.deletes, key) {
		delete(s.values, string(key))
	}
	if s.lazyDelete {
		return nil
	}
	return s.commit()
}

func (s *fakeStore) Get(key []byte, see func([]byte) error) error {
	v, ok := s.values[string(key)]
	if !ok {
		return engine.ErrNotFound
	}
	return see(v)
}

func (s *fakeStore) Close() error {
	if s.writesOn {
		go s.litter()
	}
	if s.log != nil {
		s.log.Close()
	}
	if s.dirtyMark {
		os.Remove(filepath.Join(s.dir, "dirty"))
	}
	for _, k := range s.graves {
		if _, again := s.values[k]; !again {
			s.values[k] = []byte("a ghost")
		}
	}
	for k, v := range s.values {
		if s.forget {
			s.forget = false
			continue
		}
		if err := os.WriteFile(filepath.Join(s.dir, k), v, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// save writes a pair at once, whole or not at all, so that a kill does not take it.
func (s *fakeStore) save(key, value []byte) bool {
	unfinished := filepath.Join(s.dir, "litter")
	err := os.WriteFile(unfinished, value, 0o600)
	if err == nil {
		err = os.Rename(unfinished, filepath.Join(s.dir, string(key)))
	}
	if err != nil {
		panic(err)
	}
	return true
}

// litter makes files for as long as the process lives and closes none.
func (s *fakeStore) litter() {
	for {
		f, err := os.CreateTemp(s.dir, "litter")
		if err != nil {
			return
		}
		f.WriteString("x")
	}
}

// startLoose starts a process that holds the child's output open; away: in a session
// of its own.
func startLoose(away bool) {
	args := []string{"sleep", "600"}
	if away {
		args = append([]string{"setsid"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// multiply starts processes that start processes, each in a session of its own.
func multiply() {
	const generation = `for i in 1 2 3 4 5 6; do setsid sh -c 'for j in 1 2 3 4 5 6; do setsid sleep 600 & done; sleep 600' & done; sleep 600`
	if err := exec.Command("sh", "-c", generation).Start(); err != nil {
		panic(err)
	}
}

// filled is memory that is really there.
func filled(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	return b
}

// hang starts a process of its own, leaves both pids beside the store and never
// returns.
func (s *fakeStore) hang() {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		panic(err)
	}
	pids := fmt.Sprintf("%d %d\n", os.Getpid(), sleep.Process.Pid)
	if err := os.WriteFile(filepath.Join(s.dir, "pids"), []byte(pids), 0o600); err != nil {
		panic(err)
	}
	time.Sleep(time.Hour)
}
