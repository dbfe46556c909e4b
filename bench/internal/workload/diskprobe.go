package workload

import (
	"os"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// probeEvery is how often the disk is asked what it is doing. A sync of 4 KiB every so
// often is little beside what a store syncs, and finds pauses that are longer than that.
const probeEvery = 10 * time.Millisecond

// diskProbe looks for pauses of the disk that an engine does its work on.
type diskProbe struct {
	f     *os.File
	block []byte
}

// diskPauses is what it has found.
type diskPauses struct {
	syncs   int
	longest time.Duration
	pauses  int // syncs that took longer than a pause
}

func newDiskProbe(dir string) (*diskProbe, error) {
	f, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, err
	}
	p := &diskProbe{f, make([]byte, 4096)}
	if _, err := p.sync(); err != nil { // from here on it writes over what is there
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *diskProbe) close() {
	p.f.Close()
	os.Remove(p.f.Name())
}

func (p *diskProbe) sync() (time.Duration, error) {
	start := time.Now()
	if _, err := p.f.WriteAt(p.block, 0); err != nil {
		return 0, err
	}
	err := engine.DataSync(p.f)
	return time.Since(start), err
}

// during looks at the disk while work is done.
func (p *diskProbe) during(work func() error) (diskPauses, error) {
	var found diskPauses
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- p.watch(&found, done) }()
	err := work()
	close(done)
	if probeErr := <-ended; err == nil {
		err = probeErr
	}
	return found, err
}

func (p *diskProbe) watch(found *diskPauses, done <-chan struct{}) error {
	ticks := time.NewTicker(probeEvery)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ticks.C:
		}
		took, err := p.sync()
		if err != nil {
			return err
		}
		found.syncs++
		found.longest = max(found.longest, took)
		if took > pause {
			found.pauses++
		}
	}
}
