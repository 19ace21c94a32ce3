//go:build unix

package tool

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// leash starts cmd so that it ends with this process, however this one ends. A
// second shell waits on a pipe for the end of this process, and ends the
// command's group then. The command itself begins only when that shell knows it.
//
// Processes that have left the group (setsid, job control) are found by mark,
// which cmd has in its environment, where there is a /proc. slip takes the leash
// off: call it when the command is over. start starts cmd.
func leash(cmd *exec.Cmd, mark string, start func() error) (slip func(), err error) {
	const (
		sh    = "/bin/sh"
		await = `read -r go <&3 || exit 125; exec 3<&-; exec "$@"`
		watch = `strays() { grep -ls -e "$1" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do kill "$2" "$pid"; done; }
read -r group || exit; read -r over && exit
kill -TERM -"$group"; kill -CONT -"$group"; strays "$1" -TERM
sleep 1; kill -KILL -"$group"; strays "$1" -KILL; strays "$1" -KILL`
	)
	detach(cmd)
	if _, err := os.Stat(sh); err != nil {
		return func() {}, start()
	}
	if info, err := os.Stat(cmd.Path); err != nil { // sh would say it less well
		return nil, err
	} else if !executable(info) {
		return nil, fmt.Errorf("%s cannot be executed", cmd.Path)
	}
	begin, beginWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer begin.Close()
	defer beginWrite.Close()
	end, endWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	watcher := exec.Command(sh, "-c", watch, "sh", mark)
	watcher.Dir, watcher.Env, watcher.Stdin = "/", []string{"PATH=" + systemPath}, end
	watcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends this group leaves it alone
	if err := watcher.Start(); err != nil {
		endWrite.Close()
		return nil, err
	}
	slip = func() {
		endWrite.WriteString("over\n")
		endWrite.Close()
		watcher.Wait()
	}
	cmd.Args = append([]string{"sh", "-c", await, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = sh
	cmd.ExtraFiles = []*os.File{begin}
	if err := start(); err != nil {
		endWrite.Close() // the watcher knows no group yet
		watcher.Wait()
		return nil, err
	}
	if _, err = fmt.Fprintln(endWrite, cmd.Process.Pid); err == nil {
		_, err = beginWrite.WriteString("go\n")
	}
	if err != nil {
		slip()
		cmd.Process.Kill()
		cmd.Wait()
		return nil, err
	}
	return slip, nil
}
