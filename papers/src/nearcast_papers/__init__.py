"""The papers' baselines, workloads and experiments, beside Nearcast: `nearcast bench` runs them."""
