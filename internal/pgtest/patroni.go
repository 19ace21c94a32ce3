package pgtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// ErrNoPatroni means that there is no Patroni or no etcd on this machine.
var ErrNoPatroni = errors.New("pgtest: there is no Patroni here (patroni and etcd, in PATH)")

// Patroni is a cluster that Patroni and etcd manage, in synchronous mode: what its
// leader has confirmed is on the disk of a standby.
type Patroni struct {
	Nodes  []*Node
	folder string
	etcd   string // where it listens
	ends   []func()
	guard  io.Closer // its end ends servers that Patroni has started
}

// Node is a server and the Patroni that manages it.
type Node struct {
	Server
	patroni func() (end func(), ended <-chan error, err error) // starts it
	end     func()                                             // nil if it does not run
	ended   <-chan error
}

// The settings of time, in seconds. They are as short as a busy machine allows;
// Patroni's own are 30, 10 and 10. A leader that is killed is replaced after the
// first.
const patroniTTL, patroniLoop, patroniRetry = 8, 1, 3

// StartPatroni starts a cluster of n nodes. The caller must call Stop.
func StartPatroni(n int) (*Patroni, error) {
	for _, name := range []string{"patroni", "etcd"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, ErrNoPatroni
		}
	}
	if bin() == "" {
		return nil, ErrNone
	}
	p := &Patroni{}
	if err := p.start(n); err != nil {
		err = fmt.Errorf("%w: %s", err, p.logs())
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Patroni) start(n int) (err error) {
	if p.folder, err = os.MkdirTemp("", "goclaw-patroni"); err != nil {
		return err
	}
	if err := own(p.folder); err != nil {
		return err
	}
	if err := p.watch(); err != nil {
		return err
	}
	if err := p.startEtcd(); err != nil {
		return err
	}
	for i := range n {
		node, err := p.add(fmt.Sprint("node", i+1))
		if err == nil {
			err = node.start()
		}
		if err != nil {
			return err
		}
		if i == 0 { // the first becomes the leader
			if _, err := p.Leader(); err != nil {
				return err
			}
		}
	}
	return p.settle(n)
}

// watch starts a process that ends all servers when this process ends, however it
// does: Patroni has its servers outlive it.
func (p *Patroni) watch() error {
	cmd := exec.Command("sh", "-c", `read -r _; for i in 1 2 3; do
	for f in "$0"/*/data/postmaster.pid; do [ -f "$f" ] && kill -QUIT "$(head -n 1 "$f")" 2>/dev/null; done; sleep 1; done`, p.folder)
	uid, gid, err := owner()
	if err != nil {
		return err
	}
	as(cmd, uid, gid)
	apart(cmd)
	if p.guard, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	return nil
}

// launch starts a program of the cluster, whose output is in the file name.
func (p *Patroni) launch(name, program string, args ...string) (end func(), ended <-chan error, err error) {
	uid, gid, err := owner()
	if err != nil {
		return nil, nil, err
	}
	logs, err := os.OpenFile(filepath.Join(p.folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer logs.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.folder, logs, logs
	cmd.Env = append(os.Environ(), "HOME="+p.folder)
	as(cmd, uid, gid)
	return runUntil(cmd, kill)
}

func (p *Patroni) startEtcd() error {
	client, err := freePort()
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	p.etcd = fmt.Sprintf("127.0.0.1:%d", client)
	at, among := "http://"+p.etcd, fmt.Sprintf("http://127.0.0.1:%d", peer)
	end, ended, err := p.launch("etcd", "etcd", "--data-dir", filepath.Join(p.folder, "etcd"), "--listen-client-urls", at, "--advertise-client-urls", at,
		"--listen-peer-urls", among, "--initial-advertise-peer-urls", among, "--initial-cluster", "default="+among)
	if err != nil {
		return err
	}
	p.ends = append(p.ends, func() { end(); <-ended })
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(50 * time.Millisecond) {
		r, err := http.Get(at + "/health")
		if err != nil {
			continue
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return nil
		}
	}
	return errors.New("etcd does not answer")
}

// add makes a node, which does not run yet.
func (p *Patroni) add(name string) (*Node, error) {
	folder := filepath.Join(p.folder, name)
	n := &Node{Server: Server{process: process{folder: folder}, Bin: bin(), Dir: filepath.Join(folder, "data")}}
	config := filepath.Join(folder, "patroni.yml")
	n.patroni = func() (func(), <-chan error, error) { return p.launch(name, "patroni", config) }
	p.Nodes = append(p.Nodes, n)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	if n.Port, err = freePort(); err != nil {
		return nil, err
	}
	rest, err := freePort()
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	listen, account := fmt.Sprintf("127.0.0.1:%d", n.Port), object{"username": User, "password": Password}
	text, err := json.Marshal(object{ // JSON is YAML
		"scope": "goclaw", "name": name,
		"restapi": object{"listen": fmt.Sprintf("127.0.0.1:%d", rest), "connect_address": fmt.Sprintf("127.0.0.1:%d", rest)},
		"etcd3":   object{"host": p.etcd},
		"bootstrap": object{
			"dcs": object{"ttl": patroniTTL, "loop_wait": patroniLoop, "retry_timeout": patroniRetry, "synchronous_mode": true,
				"postgresql": object{"use_pg_rewind": true, "parameters": object{"wal_log_hints": "on", "max_connections": 200, "shared_buffers": "16MB", "fsync": "off"}}},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C"}},
		},
		"postgresql": object{
			"listen": listen, "connect_address": listen, "data_dir": n.Dir, "bin_dir": n.Bin, "pgpass": filepath.Join(folder, "pgpass"),
			"authentication": object{"superuser": account, "replication": account, "rewind": account},
			"parameters":     object{"unix_socket_directories": folder},
			"pg_hba":         []string{"local all all trust", "local replication all trust", "host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"},
		},
	})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err == nil {
		err = own(folder, config)
	}
	return n, err
}

// start starts the Patroni of a node, which starts the server, as a standby if there
// is a leader.
func (n *Node) start() (err error) {
	n.end, n.ended, err = n.patroni()
	return err
}

// Kill ends all processes of the node with SIGKILL.
func (n *Node) Kill() error {
	n.endPatroni()
	return n.signal(kill)
}

func (n *Node) endPatroni() {
	if n.end != nil {
		n.end()
		<-n.ended
		n.end = nil
	}
}

// Leader waits until one of the nodes that run takes writes, and returns it.
func (p *Patroni) Leader() (*Node, error) {
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(100 * time.Millisecond) {
		for _, n := range p.Nodes {
			if n.end == nil {
				continue
			}
			if in, err := n.SQL("SELECT pg_is_in_recovery()"); err == nil && in == "f" {
				return n, nil
			}
		}
	}
	return nil, errors.New("pgtest: Patroni has no leader")
}

// settle waits until n nodes run, and the leader waits for a standby.
func (p *Patroni) settle(n int) error {
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(100 * time.Millisecond) {
		leader, err := p.Leader()
		if err != nil {
			return err
		}
		got, err := leader.SQL("SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication WHERE state = 'streaming'")
		if err == nil && got == strconv.Itoa(n-1)+"|1" {
			return nil
		}
	}
	return errors.New("pgtest: Patroni has no standby that confirms")
}

// Hosts returns a DSN with all nodes.
func (p *Patroni) Hosts(database string) string {
	servers := make([]*Server, len(p.Nodes))
	for i, n := range p.Nodes {
		servers[i] = &n.Server
	}
	return Hosts(database, servers...)
}

// logs returns what the programs of the cluster say, for errors.
func (p *Patroni) logs() (all []byte) {
	files, _ := filepath.Glob(filepath.Join(p.folder, "*.log"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		all = append(append(all, b[max(0, len(b)-2000):]...), '\n')
	}
	return all
}

// Stop ends the cluster and removes its folder.
func (p *Patroni) Stop() {
	for _, n := range p.Nodes {
		n.endPatroni()
		_ = n.signal(kill) // it may not run
	}
	for _, end := range p.ends {
		end()
	}
	if p.guard != nil {
		p.guard.Close()
	}
	os.RemoveAll(p.folder)
}
