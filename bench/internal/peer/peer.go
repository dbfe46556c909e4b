// Package peer provides processes that a workload starts beside its own: writers
// to be killed, readers in other processes.
//
// # Protocol
//
// The program starts itself again with a role in the environment. It reads its
// order, one line of JSON, from standard input, then lines of commands; it answers
// on standard output. When standard input ends, whoever started it is gone, and it
// exits at once. Peers belong to the process group of the cell that started them, so
// they end with it.
//
// # Concurrency
//
// Roles are registered by init functions. A Process is for one goroutine; Kill may
// be called from another.
package peer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// roleMark in the environment names the role.
const roleMark = "CAIRN_BENCH_PEER"

// Self is a peer seen from inside.
type Self struct {
	order    []byte
	Commands <-chan string
	Out      *os.File // what is written is read by the process that started this one
}

// Order reads what the peer is told.
func (s *Self) Order(into any) error { return json.Unmarshal(s.order, into) }

// Say writes one line of JSON.
func (s *Self) Say(v any) error { return json.NewEncoder(s.Out).Encode(v) }

var roles = map[string]func(*Self) error{}

// Register adds a role.
func Register(name string, run func(*Self) error) { roles[name] = run }

var mayStart bool // this program plays the roles it starts

// Asked reports whether this process was started as a peer. If so main calls
// Main at once. A program that does not ask cannot start peers: started again it
// would do all over what it does now.
func Asked() bool {
	mayStart = true
	return os.Getenv(roleMark) != ""
}

// Main plays the role and exits.
func Main() {
	run := roles[os.Getenv(roleMark)]
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if run == nil || err != nil {
		os.Exit(3)
	}
	commands := make(chan string, 16)
	go func() {
		for {
			command, err := in.ReadString('\n')
			if err != nil {
				os.Exit(4)
			}
			commands <- strings.TrimSpace(command)
		}
	}()
	self := &Self{order: line, Commands: commands, Out: os.Stdout}
	os.Stdout = os.Stderr // what an engine prints must not mix with the answers
	if err := run(self); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Process is a peer seen from the side that started it.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	Out   *bufio.Reader
	errs  *complaints
	ended sync.Once
	err   error
}

// Start starts a peer.
func Start(role string, order any) (*Process, error) {
	if !mayStart {
		return nil, errors.New("peer: this program does not play the roles it starts (Asked)")
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(program), errs: &complaints{}}
	p.cmd.Env = append(os.Environ(), roleMark+"="+role)
	p.cmd.Stderr = p.errs
	p.cmd.WaitDelay = 5 * time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.Out = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a peer: %w", err)
	}
	return p, p.write(append(line, '\n'))
}

// Tell sends a command.
func (p *Process) Tell(command string) error { return p.write([]byte(command + "\n")) }

func (p *Process) write(line []byte) error {
	if _, err := p.in.Write(line); err != nil {
		return fmt.Errorf("telling a peer: %w", err)
	}
	return nil
}

// Hear reads one line of JSON; if the peer ended before, the error says how.
func (p *Process) Hear(into any) error {
	line, err := p.Out.ReadBytes('\n')
	if err != nil {
		return p.Wait()
	}
	return json.Unmarshal(line, into)
}

// Kill ends the peer without warning (SIGKILL).
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// errEnded is an end without a word.
var errEnded = errors.New("it ended without an answer")

// Wait returns when the peer has ended, with an error that says how if it was not
// told to.
func (p *Process) Wait() error {
	p.ended.Do(func() {
		err := p.cmd.Wait()
		if said := p.errs.String(); err != nil && said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		if p.err = err; err == nil {
			p.err = errEnded
		}
	})
	return p.err
}

// complaints keeps the beginning of what a peer writes to standard error.
type complaints struct {
	sync.Mutex
	text []byte
}

func (c *complaints) Write(b []byte) (int, error) {
	c.Lock()
	defer c.Unlock()
	if room := 4096 - len(c.text); room > 0 {
		c.text = append(c.text, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

// String returns the line that says what happened.
func (c *complaints) String() string {
	c.Lock()
	defer c.Unlock()
	lines := strings.Split(strings.TrimSpace(string(c.text)), "\n")
	for _, l := range lines {
		if strings.HasPrefix(l, "panic:") || strings.HasPrefix(l, "fatal error:") {
			return l
		}
	}
	return lines[len(lines)-1]
}
