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

// outputPatience is how long, after a child's end, what it started may still hold its
// output open.
const outputPatience = 2 * time.Second

// launch is what else is done around the start of a child; either may be nil.
type launch struct {
	prepare func(*exec.Cmd)
	started func(*os.Process) // before the child gets its order; nil if it did not start
}

// spawn runs one child to its end and says how it ended. The error is about the
// harness, never about the engine.
func spawn(ctx context.Context, o order, limit time.Duration, around launch) (outcome, error) {
	program, err := childProgram(o.Engine)
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
	cmd.Env = append(os.Environ(), childMark+"="+o.Root)
	cmd.Dir = o.Root
	cmd.Stdout, cmd.Stderr = &answer, stderr
	cmd.WaitDelay = outputPatience
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return outcome{}, err
	}
	if around.prepare != nil {
		around.prepare(cmd)
	}
	err = cmd.Start()
	if around.started != nil {
		around.started(cmd.Process)
	}
	if err != nil {
		return outcome{}, fmt.Errorf("starting a child: %w", err)
	}
	end := func() { killGroup(cmd); killMarked(o.Root) }
	if _, err := stdin.Write(append(line, '\n')); err != nil {
		end()
	}
	killed := watch(ctx, end, limit)
	waitErr := cmd.Wait()
	why := killed()
	left := killMarked(o.Root) // whatever the child started itself
	killGroup(cmd)
	if why == killedByContext {
		return outcome{}, errInterrupted
	}
	if why == killedByLimit {
		return outcome{Status: result.Hung, Reason: fmt.Sprintf("no end after %s; killed", limit)}, nil
	}
	if errors.Is(waitErr, exec.ErrWaitDelay) {
		waitErr = nil // it ended well; what it left held its output open
	}
	out := conclude(cmd.ProcessState, waitErr, answer.Bytes(), stderr.String())
	if left > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("left %d processes running when it had ended; they were killed", left))
	}
	return out, nil
}

// Why a child was killed, if it was.
const (
	notKilled = iota
	killedByContext
	killedByLimit
)

// watch ends the child and what it started when the context ends or the limit is over.
// The returned function stops the watch and says what happened.
func watch(ctx context.Context, end func(), limit time.Duration) func() int {
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
			end()
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
	out.fallback(result.CPU, float64(state.UserTime()+state.SystemTime()))
	out.fallback(result.PeakRSS, float64(maxRSS(state)))
	return out
}

// fallback sets a figure that the child neither has nor gives a reason for.
func (o *outcome) fallback(key string, value float64) {
	_, has := o.Metrics[key]
	if _, none := o.NA[key]; !has && !none {
		if o.Metrics == nil {
			o.Metrics = map[string]float64{}
		}
		o.Metrics[key] = value
	}
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
