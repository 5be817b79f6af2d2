"""All cases: importing this registers them."""

import cases_bodies as cases_bodies
import cases_creating as cases_creating
import cases_custom as cases_custom
import cases_deleting as cases_deleting
import cases_jobs as cases_jobs
import cases_manners as cases_manners
import cases_parts as cases_parts
import cases_patching as cases_patching
import cases_paths as cases_paths
import cases_pods as cases_pods
import cases_policies as cases_policies
import cases_reading as cases_reading
import cases_tables as cases_tables
import cases_updating as cases_updating
import cases_watching as cases_watching
