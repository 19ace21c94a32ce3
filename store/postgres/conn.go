package postgres

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// pool is the connections of a Store. A connection is lent for one statement or
// one transaction. It speaks the protocol through pgconn: the types of pgx would
// make the program 3 MB larger, and a dozen of them are used.
type pool struct {
	config *pgconn.Config
	any    *pgconn.Config // if not nil, tried when no host takes writes
	answer time.Duration  // how long the server may keep silent when an answer is awaited
	slots  chan struct{}  // one for each connection in use
	mu     sync.Mutex
	idle   []*pgconn.PgConn
	open   int
	closed bool
}

// newPool returns a pool of at most so many connections. In a pool that only reads,
// they may be to a standby if no host takes writes.
func newPool(c *pgconn.Config, most int, answer time.Duration, reads bool) *pool {
	p := &pool{config: c.Copy(), answer: answer, slots: make(chan struct{}, most)}
	dial := c.DialFunc
	p.config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &line{Conn: c, answer: answer}, nil
	}
	if reads && c.ValidateConnect != nil {
		p.any = p.config.Copy()
		p.any.ValidateConnect = nil
	}
	return p
}

// line is a connection on which an answer is awaited whenever it is read. A read
// ends with an error if nothing at all comes for too long: then the server hangs,
// or has gone without a word.
type line struct {
	net.Conn
	mu     sync.Mutex
	answer time.Duration // 0: no limit
	cut    bool          // a deadline was set, because the caller's context is done
}

// Read implements net.Conn.
func (l *line) Read(b []byte) (int, error) {
	l.mu.Lock()
	if !l.cut && l.answer > 0 {
		_ = l.Conn.SetReadDeadline(time.Now().Add(l.answer)) // if it fails, so does the read
	}
	l.mu.Unlock()
	return l.Conn.Read(b)
}

// Write implements net.Conn. That the server has closed the connection is left to
// the next read, which may find why: its last message, or an alert of TLS.
func (l *line) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (l *line) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = !t.IsZero()
	return l.Conn.SetDeadline(t)
}

// allow sets how long the server of c may keep silent; 0 is without a limit.
func allow(c *pgconn.PgConn, answer time.Duration) {
	conn := c.Conn()
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if l, ok := conn.(*line); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answer = answer
		_ = l.Conn.SetReadDeadline(time.Time{})
	}
}

// dialer notices within about ten seconds that a host has gone, also on a
// connection on which nothing is sent.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}

// lend calls f with a connection.
func (p *pool) lend(ctx context.Context, f func(c *pgconn.PgConn) error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.slots <- struct{}{}:
	}
	defer func() { <-p.slots }()
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	err = f(c)
	if lost(err) { // the others are likely to be lost, too
		p.reset()
	}
	p.give(c, err == nil || !lost(err))
	return err
}

func (p *pool) take(ctx context.Context) (*pgconn.PgConn, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.open++
	p.mu.Unlock()
	c, err := pgconn.ConnectConfig(ctx, p.config)
	if p.any != nil && standby(err) {
		c, err = pgconn.ConnectConfig(ctx, p.any)
	}
	if err != nil {
		p.mu.Lock()
		p.open--
		p.mu.Unlock()
	}
	return c, err
}

// give takes a connection back.
func (p *pool) give(c *pgconn.PgConn, good bool) {
	p.mu.Lock()
	if good && !p.closed && !c.IsClosed() && c.TxStatus() == 'I' {
		p.idle = append(p.idle, c)
		p.mu.Unlock()
		return
	}
	p.open--
	p.mu.Unlock()
	hangUp(c)
}

// size returns how many connections are open.
func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// reset closes all connections that are not in use.
func (p *pool) reset() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.open -= len(idle)
	p.mu.Unlock()
	for _, c := range idle {
		hangUp(c)
	}
}

// close closes all connections, those in use when they are given back.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.reset()
}

func hangUp(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // nothing depends on it
}

// query runs one statement on c, in one round trip, and calls f with its rows.
func query(ctx context.Context, c *pgconn.PgConn, f func(row) error, sql string, args ...any) (int64, error) {
	values, types, forms := make([][]byte, len(args)), make([]uint32, len(args)), make([]int16, len(args))
	for i, a := range args {
		values[i], types[i], forms[i] = encode(a)
	}
	rows := c.ExecParams(ctx, sql, values, types, forms, []int16{1})
	var err error
	for err == nil && rows.NextRow() {
		if f != nil {
			err = f(row(rows.Values()))
		}
	}
	tag, end := rows.Close()
	if end != nil {
		err = end
	}
	return tag.RowsAffected(), err
}

// Numbers of PostgreSQL's types.
const (
	typeBytea, typeInt8, typeInt4, typeText, typeFloat8        = 17, 20, 23, 25, 701
	typeByteas, typeInt4s, typeTexts, typeInt8s         uint32 = 1001, 1007, 1009, 1016
)

// encode returns a value, the number of its type and its form: 0 is text, 1
// binary.
func encode(v any) (value []byte, typ uint32, form int16) {
	switch v := v.(type) {
	case string:
		return []byte(v), typeText, 0
	case []byte:
		return v, typeBytea, 1
	case int64:
		return binary.BigEndian.AppendUint64(nil, uint64(v)), typeInt8, 1
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), typeFloat8, 0
	case []string:
		return array(typeText, v, func(b []byte, s string) []byte { return append(b, s...) }), typeTexts, 1
	case [][]byte:
		return array(typeBytea, v, func(b, s []byte) []byte { return append(b, s...) }), typeByteas, 1
	case []int32:
		return array(typeInt4, v, func(b []byte, n int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }), typeInt4s, 1
	case []int64:
		return array(typeInt8, v, func(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }), typeInt8s, 1
	}
	panic(fmt.Sprintf("postgres: a parameter of type %T", v))
}

// array returns the binary form of an array of one dimension, without NULLs.
func array[T any](typ uint32, values []T, put func([]byte, T) []byte) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, 1) // dimensions
	b = be.AppendUint32(b, 0)    // no NULLs
	b = be.AppendUint32(b, typ)
	b = be.AppendUint32(b, uint32(len(values)))
	b = be.AppendUint32(b, 1) // the first index
	for _, v := range values {
		at := len(b)
		b = put(be.AppendUint32(b, 0), v)
		be.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b
}

// row is a row of a result, in binary form. It is valid until the next one.
type row [][]byte

// null reports whether a column is NULL.
func (r row) null(col int) bool { return r[col] == nil }

// Int implements sqlstore.Row.
func (r row) Int(col int) int64 {
	switch b := r[col]; len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 1: // a truth value
		return int64(b[0])
	}
	return 0
}

// Text implements sqlstore.Row.
func (r row) Text(col int) string { return untext(string(r[col])) }

// yes is the truth value of a column.
func (r row) yes(col int) bool { return r.Int(col) != 0 }

// at is the time in a column: microseconds since the year 2000.
func (r row) at(col int) time.Time {
	n := r.Int(col)
	if n == math.MaxInt64 || n == math.MinInt64 { // infinity
		return time.Time{}
	}
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Microsecond)
}
