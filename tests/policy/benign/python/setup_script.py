# nacre: allowed low
from setuptools import find_packages, setup

setup(
    name="pearl",
    version="1.0",
    packages=find_packages(),
    install_requires=["requests>=2"],
    entry_points={"console_scripts": ["pearl = pearl.cli:main"]},
)
