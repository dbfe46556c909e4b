package crashtest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

var roundsFlag = flag.Int("crash.rounds", 3, "stores of TestGenerations and of TestKilledRecovery, each with the seed after that of the one before")

// TestGenerations cuts the power of a store that has been used in many ways, goes on with what is left, and so four times.
// Each process has other options. The workloads begin with nothing; these go on with what a crash and recoveries have left.
func TestGenerations(t *testing.T) {
	rounds(t, func(l *lives) {
		for range 4 {
			l.reopen()
			l.work()
			end := l.At()
			if l.draw.IntN(2) == 0 {
				l.Close()
			}
			l.History.order()
			j := l.Disk.Journal()
			total := j.Len()
			var disk *memfs.FS
			var found *Found
			for i := 0; i < 16 && l.wrong == nil; i++ {
				at := l.draw.IntN(total + 1)
				if i%4 == 0 {
					at = end + l.draw.IntN(total-end+1) // in Close
				}
				disk, found = l.examine(j, at)
			}
			l.kill()
			if l.wrong != nil {
				return
			}
			l.story += fmt.Sprintf("\n\tpower cut, %d commits left of %d", found.Prefix+len(found.Extra), len(l.History.sorted))
			disk.StartJournal()
			l.begin(disk, l.History.Recovered(found))
		}
	})
}

// TestKilledRecovery has processes that are killed, one after another: what they have written is in the system's cache only.
// The next one recovers from that, perhaps while operations fail, perhaps to be killed itself in the midst of it, and
// the power is cut at any moment.
func TestKilledRecovery(t *testing.T) {
	rounds(t, func(l *lives) {
		for from, life := 0, 0; life < 4 && l.wrong == nil; life++ {
			if life > 0 {
				l.recoverUnderFaults()
			}
			l.reopen()
			opened := l.At()
			if l.draw.IntN(4) > 0 {
				l.work()
			}
			if l.draw.IntN(6) == 0 {
				l.Close()
			}
			l.kill()
			j := l.Disk.Journal()
			end := j.Len()
			for i := 0; i < 24 && l.wrong == nil; i++ {
				low, high := from, end
				if i%2 == 0 {
					high = min(end, opened+6) // in recovery
				}
				if i%4 == 0 {
					low = max(from, opened-10) // when it removes files
				}
				l.examine(j, low+l.draw.IntN(high-low+1))
			}
			from = end
		}
	})
}

// lives is a store that several processes have, one after another.
type lives struct {
	*Run
	test   string
	seed   uint64
	draw   *rand.Rand // not Run's: what comes next does not depend on the order in which goroutines draw
	maps   bool
	story  string // what happened, for a failure
	images int
	wrong  error // the first
}

// rounds does script with one store after another.
func rounds(t *testing.T, script func(l *lives)) {
	start, images, n := time.Now(), 0, uint64(0)
	for ; n < uint64(*roundsFlag) || time.Since(start) < *longFlag/10; n++ {
		l := &lives{test: t.Name(), seed: *seedFlag + n, draw: rand.New(rand.NewPCG(*seedFlag+n, 77))}
		l.maps = l.draw.IntN(2) == 0
		l.begin(memfs.New(), new(History))
		script(l)
		images += l.images
		if l.wrong != nil {
			save(t, l.wrong)
			t.Fatalf("in round %d, image %d, seed %d (-crash.seed=%[3]d -crash.rounds=1 repeats it): %v", n+1, images, l.seed, l.wrong)
		}
	}
	t.Logf("seeds %d to %d: %d images; %v", *seedFlag, *seedFlag+n-1, images, time.Since(start).Round(time.Millisecond))
}

// begin lets the next processes have disk, which holds what h says.
func (l *lives) begin(disk *memfs.FS, h *History) {
	if l.maps {
		disk.AllowMaps()
	}
	l.Run = newRunOn(disk, false)
	l.History = h
	l.OnError = func(call string, err error) {
		writes := call == "Commit" || call == "Compact" || call == "Sync" || call == "Close"
		if !writes || errors.Is(err, base.ErrCorrupt) { // a write may meet a fault; nothing is read then
			l.fail(fmt.Errorf("%s\n%s: %w", l.story, call, err))
		}
	}
}

func (l *lives) fail(err error) {
	if l.wrong == nil {
		l.wrong = err
	}
}

func (l *lives) drawOptions() cairn.Options {
	o := optionsOf(l.draw.IntN(2) == 0)
	o.Memory = memory << []int{0, 0, 1, 2, 4, 6}[l.draw.IntN(6)]
	o.SyncInterval = []time.Duration{time.Hour, time.Millisecond}[l.draw.IntN(2)]
	return o
}

// reopen opens the store, if it is not open, with other options. Nothing was lost, so all that was acknowledged is there.
func (l *lives) reopen() {
	if l.store == nil {
		l.options = l.drawOptions()
	}
	l.story += fmt.Sprintf("\n\tat %d opened, memory %d, %v, synced each %v", l.At(), l.options.Memory, l.options.Durability, l.options.SyncInterval)
	if l.Open() {
		l.look()
		l.note("Verify", l.store.Verify())
	}
}

// work uses the store in several ways.
func (l *lives) work() {
	for n := 2 + l.draw.IntN(12); n > 0 && l.wrong == nil; n-- {
		l.rand = rand.New(rand.NewPCG(l.draw.Uint64(), 0xC0A5))
		switch l.draw.IntN(14) {
		case 0:
			l.flush()
		case 1:
			l.Compact("a", "zz")
		case 2:
			l.Sync()
		case 3:
			l.Rest()
		case 4:
			l.Close()
			l.reopen()
		case 5, 6:
			var wg sync.WaitGroup
			for range 2 + l.Int(3) {
				wg.Go(func() { l.commits(2 + l.Int(10)) })
			}
			wg.Wait()
		case 7, 8:
			l.onBadDisk()
		default:
			l.commits(1 + l.Int(20))
		}
	}
}

// commits makes n commits of one size.
func (l *lives) commits(n int) {
	size := []int{50, 400, 3000, 9000, 30000}[l.Int(5)]
	for range n {
		ops := step(l.Run, l.Int(100), size)
		switch l.Int(20) {
		case 0:
			ops = largeSet(l.Run)
		case 1, 2:
			low := l.Int(60)
			ops = append(ops, DeleteRange(fmt.Sprintf("k/%04d", low), fmt.Sprintf("k/%04d", low+1+l.Int(30))))
		case 3, 4, 5, 6, 7, 8:
			ops = append(ops, l.Put(fmt.Sprintf("large/%02d", l.Int(40)), 20), Delete(fmt.Sprintf("large/%02d", l.Int(40))))
		}
		l.CommitAs(l.Int(2) == 0, ops...)
	}
}

// onBadDisk makes commits while a write of the log fails, the disk fills up, or a sync loses pages.
func (l *lives) onBadDisk() {
	switch l.draw.IntN(3) {
	case 0:
		l.failWrite(l.draw.Int64N(4), Fault{How: []How{EIO, ShortEIO, WholeEIO}[l.draw.IntN(3)]}.action())
	case 1:
		l.Disk.SetCapacity(l.Disk.Used() + l.draw.Int64N(40)*4096)
	case 2:
		l.arm(Fault{Kind: faultfs.Sync, At: 1 + l.draw.Int64N(4), How: LostPages})
	}
	l.commits(6)
	l.heal()
	if l.draw.IntN(2) == 0 {
		l.Close()
		l.reopen()
	}
}

func (l *lives) arm(f Fault) { (&afflicted{Run: l.Run, fault: f}).arm() }

func (l *lives) heal() {
	l.Faults.Heal()
	l.Disk.FailSyncs(nil)
	l.Disk.SetCapacity(0)
}

// kill ends the process: nothing it does from now on reaches the disk.
func (l *lives) kill() {
	l.Faults.Add(faultfs.Rule{Kinds: reachDisk, Sticky: true, Do: faultfs.Fail(errDisk)})
	l.Close()
	l.heal()
	l.History.order()
}

const reachDisk = faultfs.All &^ (faultfs.Close | faultfs.Lock) // which the system does for a process that is killed

// choice draws what of a power cut's images to look at.
func (l *lives) choice(j *memfs.Journal, at int) memfs.Choice {
	switch l.draw.IntN(6) {
	case 0:
		all := whole(len(j.Pending(at)))
		return all[l.draw.IntN(len(all))]
	case 1:
		return []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()}[l.draw.IntN(2)]
	case 2:
		return memfs.Random(l.draw.Uint64()).EntriesKept()
	case 3:
		return memfs.Random(l.draw.Uint64()).EntriesLost()
	case 4:
		return memfs.Random(l.draw.Uint64())
	}
	return j.Draw(l.draw, at, memfs.Plan{EveryByte: 512, Random: 8, Seed: l.draw.Uint64()}, 1)[0]
}

// examine cuts the power after at mutations, and returns the disk, after some recoveries perhaps that were cut short as
// well, with what the store holds.
func (l *lives) examine(j *memfs.Journal, at int) (*memfs.FS, *Found) {
	c := l.choice(j, at)
	image := j.State(at, c)
	l.images++
	next := l.copyOf(image)
	found, err := l.judge(image, Moment{At: at, Complete: c == memfs.Everything()})
	if err == nil {
		next, err = l.crashAgain(next, found.Pairs)
	}
	if err != nil {
		l.fail(&Failure{Test: l.test, Start: l.seed, Seed: l.seed, Outer: l.story + "\n", At: at, Choice: c, Image: image, Ops: lastOps(j, at), Err: err})
	}
	return next, found
}

func (l *lives) copyOf(image *memfs.FS) *memfs.FS {
	twin := image.Clone()
	twin.StopJournal()
	if l.maps {
		twin.AllowMaps()
	}
	return twin
}

// judge opens an image to read it, then where there is no space, then where there is.
func (l *lives) judge(image *memfs.FS, m Moment) (*Found, error) {
	seen, err := l.read(l.copyOf(image))
	if err != nil {
		return nil, fmt.Errorf("opened to be read: %w", err)
	}
	x := &examination{h: l.History, m: m, options: l.drawOptions(), silent: true}
	if x.image, err = l.withoutSpace(l.copyOf(image), seen, m); err != nil {
		return nil, fmt.Errorf("opened on a full disk: %w", err)
	}
	if err = x.run(true); err == nil {
		err = diff(seen, x.found.Pairs)
	}
	return x.found, err
}

// read returns what a reader sees, who changes nothing.
func (l *lives) read(image *memfs.FS) (seen []Pair, err error) {
	before := image.Hash()
	o := l.drawOptions()
	o.ReadOnly = true
	s, err := openAs(image, o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nor may a writer find anything
	} else if err != nil {
		return nil, err
	}
	seen, err = s.Contents()
	back, backErr := s.Backward()
	slices.Reverse(back)
	if err = errors.Join(err, backErr, s.Verify(), s.Close()); err == nil {
		err = diff(seen, back)
	}
	if err == nil && image.Hash() != before {
		err = errors.New("a reader has changed something")
	}
	return seen, err
}

// withoutSpace opens the store, perhaps, on a disk that has no space left, or little, and returns what that process leaves
// when it is closed or killed. Where nothing was lost, the space that the store has put aside has to do.
func (l *lives) withoutSpace(image *memfs.FS, seen []Pair, m Moment) (*memfs.FS, error) {
	if l.draw.IntN(2) == 0 {
		return image, nil
	}
	aside, _ := image.ReadFile(path.Join(Dir, base.FileName(base.FileReserve, 0)))
	image.SetCapacity(image.Used() + l.draw.Int64N(2)*l.draw.Int64N(300)*4096)
	killed := image
	err := l.holds(image, seen, func() { killed = l.copyOf(image) })
	if opened := killed != image; errors.Is(err, cairn.ErrNoSpace) && (opened || !m.Complete || len(aside) == 0) {
		err = nil
	}
	if l.draw.IntN(2) == 0 {
		image = killed
	}
	image.SetCapacity(0)
	return image, err
}

// crashAgain cuts the power in three recoveries in a row, none of which may lose anything, and returns one of the disks.
func (l *lives) crashAgain(disk *memfs.FS, want []Pair) (*memfs.FS, error) {
	next, cuts := disk, ""
	for range 3 {
		disk = l.copyOf(disk)
		j := disk.StartJournal()
		if l.draw.IntN(2) == 0 {
			disk.SetCapacity(disk.Used() + l.draw.Int64N(300)*4096)
		}
		err := l.holds(disk, want, nil)
		at := l.draw.IntN(j.Len() + 1)
		c := l.choice(j, at)
		cuts += fmt.Sprintf(", recovery cut after %d of %d mutations, %v", at, j.Len(), c)
		if err == nil || errors.Is(err, cairn.ErrNoSpace) {
			disk = j.State(at, c)
			err = l.holds(l.copyOf(disk), want, nil)
		}
		if err != nil {
			return disk, fmt.Errorf("%s: %w", cuts[2:], err)
		}
		if l.draw.IntN(6) == 0 {
			next = disk
		}
	}
	return next, nil
}

// holds opens the store, expects it to hold what it is to hold, calls opened, if it is not nil, and closes it.
func (l *lives) holds(image *memfs.FS, want []Pair, opened func()) error {
	s, err := openAs(image, l.drawOptions())
	if err != nil {
		return err
	}
	got, err := s.Contents()
	if err == nil {
		err = diff(want, got)
	}
	if opened != nil {
		opened()
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	return err
}

// recoverUnderFaults opens the store until it is open, each time with another fault, if any. Once it is open the last
// fault is over, and what it shows is durable, whatever the fault was.
func (l *lives) recoverUnderFaults() {
	for try := range 4 {
		l.options = l.drawOptions()
		fault := l.drawFault(try)
		s, err := openAs(l.Faults, l.options)
		l.story += fmt.Sprintf("\n\tat %d opened, memory %d, %v, fault %s: %v", l.At(), l.options.Memory, l.options.Durability, fault, err)
		l.heal()
		if err == nil {
			l.resume(s)
			l.History.Synced(l.History.Acknowledged(), l.At())
			return
		} else if fault == "none" || errors.Is(err, cairn.ErrCorrupt) {
			l.note("Open", err)
			return
		}
	}
}

// drawFault puts a fault in force and says which; none for the last try. The first often ends between a name and its sync:
// what the next Open finds then may be in the system's cache only.
func (l *lives) drawFault(try int) string {
	if try == 3 {
		return "none"
	}
	failFrom := func(kinds faultfs.Kind, at int64, err error) string {
		l.Faults.Add(faultfs.Rule{Kinds: kinds, At: at, Sticky: true, Do: faultfs.Fail(err)})
		return fmt.Sprintf("%v from number %d on fail: %v", kinds, at, err)
	}
	if try == 0 && l.draw.IntN(2) == 0 {
		return failFrom(faultfs.Rename|faultfs.Remove|faultfs.SyncDir, 1+l.draw.Int64N(5), errDisk)
	}
	switch l.draw.IntN(5) {
	case 0:
		l.Disk.SetCapacity(l.Disk.Used() + l.draw.Int64N(2)*l.draw.Int64N(200)*4096)
		return "full disk"
	case 1:
		return failFrom(faultfs.Open, 1+l.draw.Int64N(20), syscall.EMFILE)
	case 2:
		return failFrom(reachDisk, 1+l.draw.Int64N(30), errDisk)
	case 3:
		f := Fault{Kind: Kinds[l.draw.IntN(len(Kinds))], At: 1 + l.draw.Int64N(12)}
		hows := Hows(f.Kind)
		f.How = hows[l.draw.IntN(len(hows))]
		l.arm(f)
		return f.String()
	}
	return "none"
}
