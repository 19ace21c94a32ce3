package postgres

import (
	"context"
	"fmt"
	"time"
)

// Health is what is known of the server.
type Health struct {
	Version     string        // of PostgreSQL
	Schema      int           // of the tables
	Standby     bool          // it takes no writes, because it follows another server
	ReadOnly    bool          // it takes no writes, because a setting says so
	Clock       time.Duration // how far its clock is ahead of this machine's, to half a round trip
	Connections int           // in use, of all users
	Max         int           // how many there may be
	Locks       int           // leases that are held
	Expired     int           // leases whose holders gave no sign of life
	Sync        string        // synchronous_commit
	Fsync       string
	Followers   int    // servers that follow it
	Confirm     string // synchronous_standby_names: which of them a commit waits for
	Size        int64  // bytes of goclaw's tables and indexes
}

const selectHealth = `SELECT current_setting('server_version'), (SELECT version FROM goclaw_schema), pg_is_in_recovery(),
	clock_timestamp(), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
	current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
	(SELECT count(*) FROM goclaw_locks WHERE expires >= clock_timestamp()), (SELECT count(*) FROM goclaw_locks WHERE expires < clock_timestamp() AND expires > '-infinity'),
	current_setting('synchronous_commit'), current_setting('fsync'),
	pg_total_relation_size('goclaw_records') + pg_total_relation_size('goclaw_sessions'), current_setting('default_transaction_read_only')::bool,
	(SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names')`

// Health asks the server how it is.
func (s *Store) Health(ctx context.Context) (h Health, err error) {
	err = s.db.do(ctx, func() error {
		return s.db.each(ctx, func(r row) error {
			num := func(col int) int { return int(r.Int(col)) }
			h = Health{Version: r.Text(0), Schema: num(1), Standby: r.yes(2), Clock: time.Until(r.at(3)), Connections: num(4), Max: num(5),
				Locks: num(6), Expired: num(7), Sync: r.Text(8), Fsync: r.Text(9), Size: r.Int(10), ReadOnly: r.yes(11),
				Followers: num(12), Confirm: r.Text(13)}
			return nil
		}, selectHealth)
	})
	return h, err
}

// Problems says what of h loses records, or will.
func (h Health) Problems() (out []string) {
	if h.Fsync == "off" {
		out = append(out, "the server has fsync = off: a crash of its machine can lose everything")
	}
	if h.Sync == "off" {
		out = append(out, "synchronous_commit is off: a crash of the server loses the last records although they were confirmed")
	}
	if h.Sync == "local" && h.Confirm != "" {
		out = append(out, "synchronous_commit is local: no commit waits for a standby, although synchronous_standby_names names some, and a failover loses the last records although they were confirmed")
	}
	if h.Standby {
		out = append(out, "the server is a standby, and takes no records: name the primary, or several hosts with target_session_attrs=read-write")
	}
	if h.ReadOnly && !h.Standby {
		out = append(out, "default_transaction_read_only is on, and the server takes no records: turn it off for this user (ALTER ROLE ... RESET default_transaction_read_only) or in the server's configuration")
	}
	if h.Clock.Abs() > time.Minute {
		out = append(out, "the clock of the server differs from this machine's by "+h.Clock.Round(time.Second).String()+" (locks go by the server's, records have the time of the machine that wrote them)")
	}
	if h.Max > 0 && h.Connections*10 > h.Max*9 {
		out = append(out, fmt.Sprintf("%d of %d connections of the server are in use: raise max_connections there, lower pool_max_conns here, or put pgbouncer between", h.Connections, h.Max))
	}
	return out
}

// Standbys says what the loss of the server would lose; "" if no server follows it.
func (h Health) Standbys() string {
	switch {
	case h.Followers == 0:
		return ""
	case h.Confirm == "":
		return fmt.Sprintf("%d follow it and none confirms records: a failover may lose the last ones (synchronous_standby_names is empty)", h.Followers)
	}
	return fmt.Sprintf("%d follow it and records wait for %s: a failover to it loses none", h.Followers, h.Confirm)
}
