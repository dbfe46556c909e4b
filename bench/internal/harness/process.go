package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// errInterrupted ends a run: the context was cancelled while a child ran.
var errInterrupted = errors.New("interrupted")

// spawn runs one child to its end and says how it ended. The error is about the
// harness, never about the engine.
func spawn(ctx context.Context, o order, limit time.Duration) (outcome, error) {
	program, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	line, err := json.Marshal(o)
	if err != nil {
		return outcome{}, err
	}
	// The parent-death signal is tied to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var answer bytes.Buffer
	stderr := &tail{limit: 16 << 10}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childMark+"=1")
	cmd.Dir = o.Root
	cmd.Stdout, cmd.Stderr = &answer, stderr
	cmd.WaitDelay = 5 * time.Second
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return outcome{}, err
	}
	if err := cmd.Start(); err != nil {
		return outcome{}, fmt.Errorf("starting a child: %w", err)
	}
	if _, err := stdin.Write(append(line, '\n')); err != nil {
		killGroup(cmd)
	}
	killed := watch(ctx, cmd, limit)
	waitErr := cmd.Wait()
	why := killed()
	killGroup(cmd) // whatever the child started itself
	if why == killedByContext {
		return outcome{}, errInterrupted
	}
	if why == killedByLimit {
		return outcome{Status: result.Hung, Reason: fmt.Sprintf("no end after %s; killed", limit)}, nil
	}
	return conclude(cmd.ProcessState, waitErr, answer.Bytes(), stderr.String()), nil
}

// Why a child was killed, if it was.
const (
	notKilled = iota
	killedByContext
	killedByLimit
)

// watch kills the child's group when the context ends or the limit is over. The
// returned function stops the watch and says what happened.
func watch(ctx context.Context, cmd *exec.Cmd, limit time.Duration) func() int {
	done, ended := make(chan struct{}), make(chan int, 1)
	go func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		why := notKilled
		select {
		case <-ctx.Done():
			why = killedByContext
		case <-timer.C:
			why = killedByLimit
		case <-done:
		}
		if why != notKilled {
			killGroup(cmd)
		}
		ended <- why
	}()
	return func() int {
		close(done)
		return <-ended
	}
}

// conclude reads the answer of a child that ended by itself.
func conclude(state *os.ProcessState, waitErr error, answer []byte, stderr string) outcome {
	var out outcome
	if err := json.Unmarshal(answer, &out); err != nil || waitErr != nil {
		reason := firstComplaint(stderr)
		return outcome{Status: result.Crashed, Reason: strings.TrimSpace(state.String() + ": " + reason)}
	}
	if out.Status != result.OK {
		return out
	}
	out.fallBack(result.CPU, float64(state.UserTime()+state.SystemTime()))
	out.fallBack(result.PeakRSS, float64(maxRSS(state)))
	return out
}

// fallBack sets a figure that the child neither gave nor gave a reason for.
func (o *outcome) fallBack(key string, value float64) {
	if _, have := o.Metrics[key]; have || o.NA[key] != "" {
		return
	}
	if o.Metrics == nil {
		o.Metrics = map[string]float64{}
	}
	o.Metrics[key] = value
}

// firstComplaint finds the line of a crash that says what happened.
func firstComplaint(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, l := range lines {
		for _, mark := range []string{"panic:", "fatal error:", "SIG", "runtime:"} {
			if strings.Contains(l, mark) {
				return l
			}
		}
	}
	return lines[len(lines)-1]
}

// tail keeps the first half and the last half of what is written to it.
type tail struct {
	limit      int
	head, rest []byte
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if room := t.limit/2 - len(t.head); room > 0 {
		take := min(room, len(p))
		t.head, p = append(t.head, p[:take]...), p[take:]
	}
	t.rest = append(t.rest, p...)
	if over := len(t.rest) - t.limit/2; over > 0 {
		t.rest = append(t.rest[:0], t.rest[over:]...)
	}
	return n, nil
}

func (t *tail) String() string { return string(t.head) + string(t.rest) }
