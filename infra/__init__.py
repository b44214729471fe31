"""What runs on AWS, as code: the bundle, the worker's construct, the stack and the app that `cdk.json` names."""
