// Command kube is Kubernetes in one binary: its first argument names the component, the
// others are those of that component. kube.sh builds and runs it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"controller-manager": func() *cobra.Command { return manager.NewControllerManagerCommand() },
	"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":            func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) > 1 {
		if component, known := components[os.Args[1]]; known {
			os.Args = append(os.Args[:1], os.Args[2:]...)
			os.Exit(cli.Run(component()))
		}
	}
	fmt.Fprintln(os.Stderr, "usage: kube apiserver|controller-manager|scheduler|kubelet ARGUMENT…")
	os.Exit(2)
}
